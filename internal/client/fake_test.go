package client

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// fakeNode is a node that follows the protocol and checks that the client does. It is owner and store in one, and
// answers in order on one goroutine.
type fakeNode struct {
	t  testing.TB
	c  *Client
	in chan []wire.Msg

	mu      sync.Mutex
	objects map[ids.ObjectID]wire.Result
	extents map[ids.ObjectID]wire.Extent
	subs    map[ids.ObjectID][]wire.Get
	held    map[ids.ObjectID]bool
	pins    map[ids.ObjectID]int
	items   map[itemKey]wire.Result
	asks    []wire.StreamNext
	creates []*wire.Create                  // that wait for room
	full    bool                            // creates wait
	mute    bool                            // requests, and gets of what nobody makes, are not answered
	asked   func(*wire.Request) *wire.Reply // answers requests; may be nil
	told    func(m wire.Msg) []wire.Msg     // takes what nothing else here does; may be nil
	broken  error                           // Send fails with it
	arena   []byte
	used    uint64
	log     []wire.Msg
	faults  []string
	done    chan struct{}
}

var _ Port = (*fakeNode)(nil)
var _ Memory = (*fakeNode)(nil)

const fakeInline = 1024

func newFake(t testing.TB, cfg Config) *fakeNode {
	f := bareFake(t)
	cfg.Port, cfg.Memory = f, f
	if cfg.Welcome != nil {
		cfg.Welcome.Version, cfg.Welcome.InlineMax = wire.Version, fakeInline
	} else {
		cfg.Welcome = &wire.Welcome{Version: wire.Version, Client: 3, Job: 7, Root: ids.RootTask(7, 1), InlineMax: fakeInline}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f.c = New(cfg)
	go f.serve()
	t.Cleanup(func() {
		if err := f.c.Close(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("close: %v", err)
		}
		for _, s := range f.faultList() {
			t.Errorf("protocol: %s", s)
		}
	})
	return f
}

func bareFake(t testing.TB) *fakeNode {
	return &fakeNode{t: t, in: make(chan []wire.Msg, 1<<16), done: make(chan struct{}), arena: make([]byte, 1<<20),
		objects: map[ids.ObjectID]wire.Result{}, extents: map[ids.ObjectID]wire.Extent{}, subs: map[ids.ObjectID][]wire.Get{},
		held: map[ids.ObjectID]bool{}, pins: map[ids.ObjectID]int{}, items: map[itemKey]wire.Result{}}
}

func (f *fakeNode) Send(msgs ...wire.Msg) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return f.broken
	}
	select {
	case f.in <- append([]wire.Msg(nil), msgs...):
	default:
		return errors.New("fake: queue full")
	}
	return nil
}

func (f *fakeNode) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == nil {
		f.broken = errors.New("fake: closed")
		close(f.in)
	}
	return nil
}

func (f *fakeNode) Map(e wire.Extent, _ bool) ([]byte, error) {
	if e.Off+e.Size > uint64(len(f.arena)) {
		return nil, fmt.Errorf("extent %v is outside", e)
	}
	return f.arena[e.Off : e.Off+e.Size : e.Off+e.Size], nil
}

func (f *fakeNode) serve() {
	defer close(f.done)
	for batch := range f.in {
		f.mu.Lock()
		var out []wire.Msg
		for _, m := range batch {
			f.log = append(f.log, m)
			out = f.handle(m, out)
		}
		f.mu.Unlock()
		f.c.Deliver(out)
	}
}

func (f *fakeNode) fault(format string, args ...any) {
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

func (f *fakeNode) faultList() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faults
}

func (f *fakeNode) handle(m wire.Msg, out []wire.Msg) []wire.Msg {
	switch m := m.(type) {
	case *wire.Submit:
		for i := range max(0, int(m.Spec.Opts.NumReturns)) {
			f.held[m.Spec.ID.Return(i)] = true
		}
		for _, n := range m.Spec.Promises {
			f.held[ids.Derive(m.Spec.ID, uint64(n)).Return(0)] = true
		}
	case *wire.PutValue:
		f.held[m.ID] = true
		f.objects[m.ID] = wire.Result{Kind: wire.ResultInline, Value: m.Value, Size: uint64(len(m.Value.Data))}
	case *wire.AddRef:
		if f.held[m.ID] {
			f.fault("AddRef of %v, which is held", m.ID)
		}
		f.held[m.ID] = true
	case *wire.Release:
		for _, id := range m.IDs {
			if !f.held[id] && id != id.Task.Stream() {
				f.fault("Release of %v, which is not held", id)
			}
			delete(f.held, id)
		}
	case *wire.Get:
		if !f.held[m.ID] {
			f.fault("Get of %v, which is not held", m.ID)
		}
		if r, ok := f.objects[m.ID]; ok {
			return append(out, f.answer(*m, r))
		}
		if m.ID.Index > ids.PutBit+1<<30 && !f.mute { // it has not put so many
			return append(out, f.answer(*m, wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeObjectFreed, "nobody has put it")}))
		}
		f.subs[m.ID] = append(f.subs[m.ID], *m)
	case *wire.Unget:
		f.subs[m.ID] = nil
	case *wire.Unpin:
		if f.pins[m.ID] < int(m.N) {
			f.fault("Unpin of %v: %d of %d pins", m.ID, m.N, f.pins[m.ID])
		}
		if f.pins[m.ID] -= int(m.N); f.pins[m.ID] <= 0 {
			delete(f.pins, m.ID)
		}
	case *wire.Create:
		switch {
		case m.Size > uint64(len(f.arena)):
			return append(out, &wire.Created{Req: m.Req, ID: m.ID, Err: errs.New(errs.CodeObjectTooLarge, "asked %d, limit %d", m.Size, len(f.arena))})
		case f.full:
			f.creates = append(f.creates, m)
		default:
			return append(out, f.grant(m))
		}
	case *wire.Abort:
		for i, q := range f.creates {
			if q.ID == m.ID {
				f.creates = append(f.creates[:i], f.creates[i+1:]...)
				break
			}
		}
		delete(f.extents, m.ID)
	case *wire.Seal:
		if _, ok := f.extents[m.ID]; !ok {
			f.fault("Seal of %v, which was not granted", m.ID)
		}
		f.held[m.ID] = true
		f.objects[m.ID] = wire.Result{Kind: wire.ResultStored, Size: m.Size, Value: wire.Value{Meta: m.Value.Meta}}
	case *wire.StreamNext:
		if r, ok := f.items[itemKey{m.Task, m.Index}]; ok {
			return append(out, &wire.StreamItem{Task: m.Task, Index: m.Index, Result: r})
		}
		f.asks = append(f.asks, *m)
	default:
		if f.told != nil {
			return append(out, f.told(m)...)
		}
	case *wire.Request:
		if f.asked != nil {
			return append(out, f.asked(m))
		}
		if !f.mute {
			return append(out, &wire.Reply{Req: m.Req, Body: append([]byte("re:"), m.Body...)})
		}
	}
	return out
}

func (f *fakeNode) grant(m *wire.Create) *wire.Created {
	if f.used+m.Size > uint64(len(f.arena)) {
		f.used = 0 // tests are small: what wraps has been freed
	}
	e := wire.Extent{Off: f.used, Size: m.Size}
	f.used += m.Size
	f.extents[m.ID] = e
	return &wire.Created{Req: m.Req, ID: m.ID, Extent: e}
}

func (f *fakeNode) answer(g wire.Get, r wire.Result) wire.Msg {
	m := &wire.Resolved{ID: g.ID, Fetch: g.Fetch, Result: r}
	if g.Fetch && r.Kind == wire.ResultStored {
		m.Extent = f.extents[g.ID]
		f.pins[g.ID]++
	}
	return m
}

// resolve gives an object its result and answers the waiters.
func (f *fakeNode) resolve(id ids.ObjectID, r wire.Result) {
	f.mu.Lock()
	f.objects[id] = r
	var out []wire.Msg
	for _, g := range f.subs[id] {
		out = append(out, f.answer(g, r))
	}
	delete(f.subs, id)
	f.mu.Unlock()
	f.c.Deliver(out)
}

func (f *fakeNode) resolveInline(id ids.ObjectID, data string) {
	f.resolve(id, wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte(data)}, Size: uint64(len(data))})
}

func (f *fakeNode) resolveStored(id ids.ObjectID, data string) {
	f.mu.Lock()
	a := f.grant(&wire.Create{ID: id, Size: uint64(len(data))})
	copy(f.arena[a.Extent.Off:], data)
	f.mu.Unlock()
	f.resolve(id, wire.Result{Kind: wire.ResultStored, Size: uint64(len(data)), Value: wire.Value{Meta: []byte("m")}})
}

func (f *fakeNode) emit(task ids.TaskID, i uint32, r wire.Result) {
	f.mu.Lock()
	f.items[itemKey{task, i}] = r
	var out []wire.Msg
	for _, a := range f.asks {
		if a.Task == task && a.Index == i {
			out = append(out, &wire.StreamItem{Task: task, Index: i, Result: r})
		}
	}
	f.mu.Unlock()
	f.c.Deliver(out)
}

// until waits until cond holds for the messages that the node has seen.
func (f *fakeNode) until(what string, cond func() bool) {
	f.t.Helper()
	testkit.Eventually(f.t, what, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return cond()
	})
}

// count counts the messages of a kind.
func (f *fakeNode) count(k wire.Kind) int {
	n := 0
	for _, m := range f.log {
		if m.Kind() == k {
			n++
		}
	}
	return n
}

var plain = &wire.TaskOptions{Func: "f", NumReturns: 1}

func (f *fakeNode) submit(opts *wire.TaskOptions) (*wire.TaskSpec, []*Handle) {
	f.t.Helper()
	spec := &wire.TaskSpec{ID: f.c.Root().NextTask(), Parent: f.c.Root().Task, Opts: opts}
	hs, err := f.c.Submit(f.t.Context(), spec)
	if err != nil {
		f.t.Fatalf("submit: %v", err)
	}
	return spec, hs
}
