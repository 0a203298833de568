package world

import (
	"cmp"
	"maps"
	"slices"

	"mobula/gcs"
	"mobula/internal/errs"
)

// control is a node's control plane: the core of package gcs, and the requests without an answer, which outlive it.
type control struct {
	*gcsPart
	calls   *box // to the tables, one after the other
	last    uint64
	waiting map[uint64]*request
}

type request struct {
	gcs.Request
	done func(gcs.Reply)
}

func (n *Node) startControl() {
	c := &control{waiting: make(map[uint64]*request)}
	n.control = c
	c.calls = n.box("tables", c.call)
	c.gcsPart = &gcsPart{do: c.carryOut, poisoned: c.poison, build: func(restart int) (core[gcs.Event, gcs.Effect], []gcs.Event) {
		first := n.w.tables.watch(n)
		if restart > 0 {
			for _, id := range slices.Sorted(maps.Keys(c.waiting)) {
				first = append(first, c.waiting[id].Request)
			}
		}
		return gcs.NewCore(), first
	}}
	startPart(n, kindControl, "gcs", c.gcsPart)
}

func (c *control) ask(op gcs.Op, done func(gcs.Reply)) {
	c.last++
	r := &request{gcs.Request{ID: c.last, Op: op}, done}
	c.waiting[r.ID] = r
	c.box.put(r.Request)
}

// poison answers the request of an event that is dropped.
func (c *control) poison(ev gcs.Event) {
	switch ev := ev.(type) {
	case gcs.Request:
		c.carryOut(gcs.Reply{ID: ev.ID, Err: errPoisoned})
	case gcs.Answered:
		c.carryOut(gcs.Reply{ID: ev.ID, Err: errPoisoned})
	}
}

func (c *control) carryOut(e gcs.Effect) {
	switch e := e.(type) {
	case gcs.After:
		c.after(e.D, e.Ev)
	case gcs.Reply:
		r := c.waiting[e.ID]
		delete(c.waiting, e.ID)
		if r != nil {
			r.done(e)
		}
	default:
		if !c.n.w.cfg.NoTables {
			c.calls.put(e)
		}
	}
}

// call makes one call to the tables. One that fails may have been made.
func (c *control) call(e any) {
	w := c.n.w
	fails := w.plan.callFails()
	a := gcs.Answered{ID: gcs.CallID(e.(gcs.Effect))}
	if !fails || w.rng.IntN(2) == 0 {
		a = w.tables.do(e)
	}
	if fails {
		_, read := e.(gcs.Read)
		a = gcs.Answered{ID: a.ID, Wrote: !read, Err: errs.New(errs.CodeDeadline, "the server does not answer")}
	}
	c.box.put(a)
}

// tables are the control plane's, in the cluster; they are synced.
type tables struct {
	revision uint64
	rows     map[gcs.Bucket]map[string]row
	watchers []*Node
	used     bool
}

type row struct {
	record   gcs.Record
	revision uint64
}

func newTables() *tables {
	t := &tables{rows: make(map[gcs.Bucket]map[string]row)}
	for _, b := range gcs.Buckets {
		t.rows[b] = make(map[string]row)
	}
	return t
}

// watch gives what there is, and has a node told each change from now on.
func (t *tables) watch(n *Node) []gcs.Event {
	if !slices.Contains(t.watchers, n) {
		t.watchers = append(t.watchers, n)
	}
	var first []gcs.Changed
	for b, rows := range t.rows {
		for key, r := range rows {
			first = append(first, gcs.Changed{Bucket: b, Key: key, Record: r.record, Revision: r.revision})
		}
	}
	slices.SortFunc(first, func(a, b gcs.Changed) int { return cmp.Compare(a.Revision, b.Revision) })
	var out []gcs.Event
	for _, c := range first {
		out = append(out, c)
	}
	return out
}

func (t *tables) do(e any) gcs.Answered {
	switch e := e.(type) {
	case gcs.Write:
		b, key := e.Record.Bucket(), e.Record.Key()
		if e.Revision >= 0 && t.rows[b][key].revision != uint64(e.Revision) {
			return gcs.Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		t.revision++
		t.used = true
		t.rows[b][key] = row{e.Record, t.revision}
		t.tell(gcs.Changed{Bucket: b, Key: key, Record: e.Record, Revision: t.revision})
		return gcs.Answered{ID: e.ID, Wrote: true, Revision: t.revision}
	case gcs.Delete:
		if e.Revision >= 0 && t.rows[e.Bucket][e.Key].revision != uint64(e.Revision) {
			return gcs.Answered{ID: e.ID, Wrote: true, Conflict: true}
		}
		t.revision++
		delete(t.rows[e.Bucket], e.Key)
		t.tell(gcs.Changed{Bucket: e.Bucket, Key: e.Key, Revision: t.revision})
		return gcs.Answered{ID: e.ID, Wrote: true}
	case gcs.Read:
		r := t.rows[e.Bucket][e.Key]
		return gcs.Answered{ID: e.ID, Record: r.record, Revision: r.revision}
	}
	return gcs.Answered{}
}

func (t *tables) tell(c gcs.Changed) {
	for _, n := range t.watchers {
		n.control.box.put(c)
	}
}
