package cluster

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

const (
	maxReported = 32   // shapes in a report; it is to be small
	maxShapes   = 1024 // remembered

	heldShares = 16 // of a store's memory: it is news that another one is in use

	// After repeat a report is told though it says nothing new, to the nodes that this one works with: if it does not arrive, the connection is cut. To the
	// others it is told for each of them every seldom, so that an idle node costs the same however many there are.
	repeat = 4 * time.Second
	seldom = time.Second

	heardEvery = 100 * time.Microsecond // a node hears of another one at most: so often a node reports, times the number of nodes
)

// Reporter makes a node's reports of what its scheduler says, and tells which of them the others should hear. A report costs no memory of its own, once the
// classes that wait are known.
type Reporter struct {
	node   Node
	shapes map[options]*Shape // nil: the options say none, and a scheduler refuses them

	said Node               // the last report that was told because it said something new
	told map[ids.Home]int64 // when each node was told last
	at   int64              // and when any of them was
	due  []ids.Home         // as Due gave them
}

// options is what a shape follows from. A class keeps its options, so the pointer does.
type options struct {
	opts *wire.TaskOptions
	kind wire.TaskKind
}

// NewReporter makes a reporter for a life of a node. Its reports are numbered from above last, which no earlier life may have reached.
func NewReporter(self ids.Home, labels map[string]string, last uint64) *Reporter {
	return &Reporter{node: Node{ID: self, Version: last, Labels: labels}, shapes: make(map[options]*Shape), told: make(map[ids.Home]int64)}
}

// Report makes the next report. It is valid until the one after.
func (r *Reporter) Report(l *sched.Load, s State, store Store, chooses bool) *Node {
	n := &r.node
	n.Version++
	n.State, n.Store, n.Short, n.Last, n.Chooses = s, store, l.Paused, l.Last, chooses
	n.Total = append(n.Total[:0], l.Total...)
	n.Free = append(n.Free[:0], l.Free...)
	n.Backlog = n.Backlog[:0]
	for _, w := range l.Waiting {
		r.waits(w)
	}
	return n
}

// Due gives the nodes that are to be told the last report, this one among them: all of its audience if it says something new or demands wait, those that were not
// told yet, and those that were told a while ago. busy are those of them that this node works with, in order. Where there are many nodes each reports less
// often. The slice is valid until the next Due.
func (r *Reporter) Due(now int64, nodes int, audience, busy []ids.Home) []ids.Home {
	r.due = r.due[:0]
	if r.at != 0 && now < r.at+int64(nodes)*int64(heardEvery) {
		return r.due
	}
	news := len(r.node.Backlog) > 0 || !r.node.says(&r.said)
	if news {
		r.say()
	}
	r.tell(now, r.node.ID, news, repeat)
	idle := max(repeat, time.Duration(len(audience))*seldom)
	for _, other := range audience {
		every := idle
		if _, works := slices.BinarySearch(busy, other); works {
			every = repeat
		}
		r.tell(now, other, news, every)
	}
	if len(r.told) > len(audience)+1 {
		maps.DeleteFunc(r.told, func(home ids.Home, _ int64) bool { return home != r.node.ID && !slices.Contains(audience, home) })
	}
	if len(r.due) > 0 {
		r.at = now
	}
	return r.due
}

// Forget has a node be told anew: it lives again, or has forgotten what it was told.
func (r *Reporter) Forget(node ids.Home) { delete(r.told, node) }

func (r *Reporter) tell(now int64, node ids.Home, news bool, every time.Duration) {
	if at, before := r.told[node]; news || !before || now >= at+int64(every) {
		r.told[node] = now
		r.due = append(r.due, node)
	}
}

// say keeps what the last report says.
func (r *Reporter) say() {
	n, was := &r.node, &r.said
	total, free, backlog := was.Total, was.Free, was.Backlog
	*was = *n
	was.Total, was.Free, was.Backlog = append(total[:0], n.Total...), append(free[:0], n.Free...), append(backlog[:0], n.Backlog...)
}

// says tells whether a report says what an earlier one did, as far as others choose by it.
func (n *Node) says(was *Node) bool {
	return n.sameAs(was) && n.Short == was.Short && n.Last == was.Last && n.Chooses == was.Chooses && n.Store.Limit == was.Store.Limit && n.Store.share() == was.Store.share() &&
		slices.Equal(n.Free, was.Free) && slices.EqualFunc(n.Backlog, was.Backlog, func(a, b Backlog) bool { return a.N == b.N && a.Shape.Equal(b.Shape) })
}

// share is which share of the store's memory is in use, in heldShares.
func (s Store) share() uint64 { return s.Held * heldShares / max(s.Limit, 1) }

// waits adds a class to what waits of its shape.
func (r *Reporter) waits(w sched.Waiting) {
	key := options{w.Opts, w.Kind}
	s, known := r.shapes[key]
	if !known {
		if len(r.shapes) >= maxShapes {
			clear(r.shapes)
		}
		if of, err := ShapeOf(w.Opts, w.Kind); err == nil {
			s = &of
		}
		r.shapes[key] = s
	}
	if s == nil {
		return
	}
	n := &r.node
	if i := slices.IndexFunc(n.Backlog, func(b Backlog) bool { return b.Shape.Equal(*s) }); i >= 0 {
		n.Backlog[i].N += w.N
	} else if len(n.Backlog) < maxReported {
		n.Backlog = append(n.Backlog, Backlog{*s, w.N})
	}
}
