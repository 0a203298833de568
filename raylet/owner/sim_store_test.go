package owner

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// simStore is the object store of a node: who sealed what, and requests answered at once or, where
// the bytes were lost, with Lost.
type simStore struct {
	w       *simWorld
	node    ids.Home
	sealed  map[ids.ObjectID]*simObject
	located map[ids.ObjectID]objectstore.Located // what other nodes have
	granted map[simAttempt]simGrant              // written and not sealed
	pins    map[simPin]simPinned                 // of arguments
	seals   int
	asks    uint64 // PinArgs
}

type simObject struct {
	attempt uint32
	val     uint64
	meta    []byte
	lost    bool
}

func newSimStore(w *simWorld, node ids.Home) *simStore {
	return &simStore{w: w, node: node, sealed: make(map[ids.ObjectID]*simObject), located: make(map[ids.ObjectID]objectstore.Located),
		granted: make(map[simAttempt]simGrant), pins: make(map[simPin]simPinned)}
}

func (s *simStore) tell(m objectstore.OwnerMsg) {
	s.w.post(at("store", s.node), FromStore{Node: s.node, Msg: m})
}

// read gives an object that is here, or that another node has; nil: it is lost.
func (s *simStore) read(id ids.ObjectID) *simObject {
	if o := s.sealed[id]; o != nil && !o.lost {
		return o
	}
	delete(s.sealed, id)
	for _, node := range s.located[id].On {
		from := s.w.stores[node]
		if from == nil {
			continue
		}
		switch o := from.sealed[id]; {
		case o == nil || o.attempt != s.located[id].Attempt:
		case o.lost:
			delete(from.sealed, id) // which it sees when it reads it
		default:
			s.sealed[id] = &simObject{attempt: o.attempt, val: o.val, meta: o.meta}
			s.tell(objectstore.Imported{ID: id, Attempt: o.attempt})
			return s.sealed[id]
		}
	}
	delete(s.located, id)
	return nil
}

// evictOne drops a copy that another node has too.
func (s *simStore) evictOne() {
	for _, id := range slices.SortedFunc(maps.Keys(s.located), ids.ObjectID.Compare) {
		if s.sealed[id] != nil && s.w.rng.IntN(2) == 0 {
			delete(s.sealed, id)
			s.tell(objectstore.Evicted{ID: id})
			return
		}
	}
}

type simPin struct {
	task    ids.TaskID
	attempt uint32
}

// simPinned is the worker that reads the arguments, and which PinArgs it was: extents of one before may hold other bytes by now.
type simPinned struct {
	by ids.ClientID
	n  uint64
}

type simAttempt struct {
	id      ids.ObjectID
	attempt uint32
}

func (s *simStore) handle(m any) {
	w := s.w
	switch m := m.(type) {
	case objectstore.SealObject:
		key := simAttempt{m.ID, m.Attempt}
		val, ok := s.granted[key]
		if !ok {
			return // its writer died: found lost when it is asked for
		}
		delete(s.granted, key)
		s.sealed[m.ID] = &simObject{attempt: m.Attempt, val: val.val, meta: m.Meta}
		s.seals++
	case objectstore.DropAttempt:
		delete(s.granted, simAttempt{m.ID, m.Attempt})
		if o := s.sealed[m.ID]; o != nil && o.attempt == m.Attempt {
			delete(s.sealed, m.ID)
		}
		if l, ok := s.located[m.ID]; ok && l.Attempt == m.Attempt {
			delete(s.located, m.ID)
		}
	case objectstore.Located:
		o := s.sealed[m.ID]
		switch {
		case len(m.On) > 0:
			if o == nil || o.attempt == m.Attempt {
				s.located[m.ID] = m
			}
		case o == nil || o.attempt != m.Attempt:
			delete(s.located, m.ID)
			s.tell(objectstore.Lost{ID: m.ID, Copy: m.Attempt})
		default:
			delete(s.located, m.ID)
		}
	case objectstore.PinForGet:
		o := s.read(m.ID)
		if o == nil {
			s.tell(objectstore.Lost{ID: m.ID, Client: m.Client, Err: errs.New(errs.CodeObjectLost, "its spill file is gone")})
			return
		}
		if cl := w.clients[m.Client]; cl != nil {
			cl.in = append(cl.in, &wire.Resolved{ID: m.ID, Fetch: true, Extent: wire.Extent{Off: o.val}, Result: wire.Result{Kind: wire.ResultStored, Value: wire.Value{Meta: o.meta, Refs: m.Refs}}})
		}
	case objectstore.PinArgs:
		s.asks++
		n := s.asks
		if has, ok := s.pins[simPin{m.Task, m.Attempt}]; ok {
			n = has.n // pinned all along
		}
		out := objectstore.ArgsPinned{Task: m.Task, Attempt: m.Attempt, Ask: m.Ask}
		for _, id := range m.IDs {
			o := s.read(id)
			if o == nil {
				s.tell(objectstore.Lost{ID: id, Task: m.Task, Attempt: m.Attempt, Ask: m.Ask})
				return
			}
			out.Values = append(out.Values, objectstore.PinnedValue{ID: id, Extent: wire.Extent{Off: o.val, Size: n}})
		}
		if w.refusals > 0 && w.rng.Float64() < w.refusals {
			s.tell(objectstore.ArgsRefused{Task: m.Task, Attempt: m.Attempt, Ask: m.Ask, Err: errs.New(errs.CodeStoreFull, "too much")})
			return
		}
		if w.clients[m.Worker] != nil {
			if by, has := s.pins[simPin{m.Task, m.Attempt}]; has && by.by != m.Worker {
				w.t.Fatalf("arguments of %v, attempt %d, are pinned for %d, and now for %d", m.Task, m.Attempt, by.by, m.Worker)
			}
			s.pins[simPin{m.Task, m.Attempt}] = simPinned{m.Worker, n}
		}
		if w.rng.IntN(4) == 0 {
			s.tell(objectstore.ArgsWait{Task: m.Task, Attempt: m.Attempt, Ask: m.Ask})
		}
		s.tell(out)
	case objectstore.KeepArgs:
		maps.DeleteFunc(s.pins, func(p simPin, _ simPinned) bool {
			return !slices.Contains(m.Attempts, objectstore.UnpinArgs{Task: p.task, Attempt: p.attempt})
		})
	case objectstore.UnpinArgs:
		delete(s.pins, simPin{m.Task, m.Attempt})
	case objectstore.Pack:
		for _, v := range m.Values {
			if w.rng.IntN(4) == 0 {
				continue // no room
			}
			s.sealed[v.ID] = &simObject{val: valueOf(v.Value.Data), meta: v.Value.Meta}
			s.tell(objectstore.Packed{ID: v.ID, Size: uint64(len(v.Value.Data))})
		}
	case objectstore.Free:
		for _, id := range m.IDs {
			delete(s.sealed, id)
			delete(s.located, id)
		}
	case objectstore.ListObjects:
		inv := s.inventory(true)
		inv.Ask = m.Ask
		for _, k := range slices.SortedFunc(maps.Keys(s.granted), func(a, b simAttempt) int { return cmp.Or(a.id.Compare(b.id), cmp.Compare(a.attempt, b.attempt)) }) {
			inv.Unsealed = append(inv.Unsealed, objectstore.Left{ID: k.id, Attempt: k.attempt})
		}
		s.tell(inv)
	case objectstore.DropJob:
		clear(s.sealed)
		clear(s.pins)
	}
}

// checkPinned fails where a worker is given extents that are not those of the pins that it has now.
func (s *simStore) checkPinned(m *wire.Exec) {
	for _, t := range m.Tasks {
		for _, a := range t.Args {
			if has := s.pins[simPin{t.Spec.ID, t.Attempt}]; a.Result.Kind == wire.ResultStored && has.n != a.Extent.Size {
				s.w.t.Fatalf("%v, attempt %d, is given the extents of its PinArgs number %d, and has the pins of number %d", t.Spec.ID, t.Attempt, a.Extent.Size, has.n)
			}
		}
	}
}

// restart rebuilds the store; what it has answered is on its way.
func (s *simStore) restart() {
	s.tell(s.inventory(false))
}

func (s *simStore) inventory(asked bool) objectstore.Inventory {
	inv := objectstore.Inventory{Job: 1, Asked: asked}
	for _, id := range slices.SortedFunc(maps.Keys(s.sealed), ids.ObjectID.Compare) {
		inv.Objects = append(inv.Objects, objectstore.SealedInfo{ID: id, Attempt: s.sealed[id].attempt, Size: 8, Meta: s.sealed[id].meta})
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.located), ids.ObjectID.Compare) {
		if s.sealed[id] == nil {
			inv.Objects = append(inv.Objects, objectstore.SealedInfo{ID: id, Attempt: s.located[id].Attempt, Size: 8, Elsewhere: true})
		}
	}
	return inv
}

// loseOne makes a stored object unreadable.
func (s *simStore) loseOne() {
	var can []ids.ObjectID
	for id, o := range s.sealed {
		if !o.lost {
			can = append(can, id)
		}
	}
	if len(can) == 0 {
		return
	}
	slices.SortFunc(can, ids.ObjectID.Compare)
	id := can[s.w.rng.IntN(len(can))]
	s.sealed[id].lost = true
}

func (s *simStore) check() {
	for id := range s.located {
		s.w.t.Fatalf("node %v still knows where object %v is", s.node, id)
	}
	for id := range s.sealed {
		s.w.t.Fatalf("object %v is still in the store", id)
	}
	for p, by := range s.pins {
		s.w.t.Fatalf("arguments of %v, attempt %d, are still pinned for %d", p.task, p.attempt, by.by)
	}
	for a := range s.granted {
		s.w.t.Fatalf("attempt %d at %v is still in the store", a.attempt, a.id)
	}
}

// A value is 8 bytes and filler.
func valueOf(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func bytesOf(v uint64, size int) []byte {
	return append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+size), v), make([]byte, size)...)
}

func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = (h ^ p) * 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h | 1
}
