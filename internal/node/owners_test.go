package node

import (
	"context"
	"slices"
	"testing"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/wire"
)

// paused is an owner whose core waits for client 6; it has taken client 5's answer.
func paused(t *testing.T) *ownerActor {
	t.Helper()
	core, err := owner.Rebuild(owner.Config{Job: 1, InlineBudget: 1 << 20}, func(func(uint64, []byte) bool) {})
	if err != nil {
		t.Fatal(err)
	}
	o := &ownerActor{n: &Node{}, job: 1, core: core}
	o.step(owner.Restored{Epoch: 7, Clients: []owner.ClientJoined{{Client: 5, Role: wire.RoleDriver}, {Client: 6, Role: wire.RoleWorker}}})
	o.step(answer(5))
	return o
}

func (o *ownerActor) step(ev owner.Event) { ownerCore{o.core, o}.Step(1, ev) }

func answer(id ids.ClientID) owner.FromClient {
	return owner.FromClient{Client: id, Msgs: []wire.Msg{&wire.Holdings{Component: wire.ComponentOwner, Epoch: 7}}}
}

func TestTheNextCoreIsGivenWhatTheLastOneKeptBack(t *testing.T) {
	panicked := func(phase string) actors.Start {
		return actors.Start{Restart: 2, Reason: &actors.PanicError{Phase: phase}}
	}
	for _, tc := range []struct {
		name  string
		steps []owner.Event
		phase string
		want  int
	}{
		{"in the step of a kept event, which the kit delivers again", nil, "Step", 0},
		{"in its effects", nil, "Do", 0},
		{"while what was written is flushed: nothing is delivered again", nil, "Flush", 1},
		{"in an event of New's", nil, "start", 1},
		{"at a timer, which is not kept", []owner.Event{owner.Timer{}}, "Step", 1},
		{"at a question", []owner.Event{inspect.Question{Ask: func(*owner.Core) {}}}, "Step", 1},
		{"in the step that goes on", []owner.Event{answer(6)}, "Step", 1},
		{"a step later", []owner.Event{answer(6), owner.Timer{}}, "Step", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := paused(t)
			for _, ev := range tc.steps {
				o.step(ev)
			}
			if got := o.keptBack(panicked(tc.phase)); len(got) != tc.want {
				t.Errorf("%d events, want %d: %+v", len(got), tc.want, got)
			}
		})
	}
}

// listener is a core that says what it is stepped on.
type listener chan owner.Event

func (l listener) Step(_ int64, ev owner.Event) []owner.Effect {
	l <- ev
	return nil
}

// The store is there before the owners of an earlier life's jobs: what it found waits for them, and
// what is nobody's is named.
func TestAnInventoryWaitsForItsOwner(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer func() {
		if err := sys.StopTree(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	heard := make(listener, 4)
	ref, err := actors.Spawn(sys, actors.Spec[owner.Event, owner.Effect]{
		Kind: "owner", Name: "owner/1",
		New: func(actors.Start) (actors.Core[owner.Event, owner.Effect], []owner.Event, error) {
			return heard, nil, nil
		},
		Do: func(*actors.Ref[owner.Event], owner.Effect) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	var jobs owners
	found := func(job ids.JobID) owner.Event {
		return owner.FromStore{Msg: objectstore.Inventory{Job: job, Objects: []objectstore.SealedInfo{{Size: uint64(job)}}}}
	}
	jobs.post(1, found(1))
	jobs.post(1, owner.FromStore{Msg: objectstore.Lost{}}) // not of an owner that has yet to come
	jobs.post(2, found(2))
	jobs.put(&ownerActor{job: 1, ref: ref})
	jobs.post(1, owner.Timer{})
	first, second := <-heard, <-heard
	if m, ok := first.(owner.FromStore); !ok || m.Msg.(objectstore.Inventory).Objects[0].Size != 1 {
		t.Errorf("the owner that came is told %+v first", first)
	}
	if _, ok := second.(owner.Timer); !ok {
		t.Errorf("the owner that came is told %+v", second)
	}
	if got := jobs.unowned(); !slices.Equal(got, []ids.JobID{2}) {
		t.Errorf("nobody owns what jobs %v have", got)
	}
	if got := jobs.unowned(); len(got) != 0 {
		t.Errorf("%v are named again", got)
	}
}

// An effect is handed on by value, several for each task: none is to be moved to the heap.
func TestAnEffectStaysOffTheHeap(t *testing.T) {
	o := &ownerActor{n: &Node{}, job: 1}
	e := owner.Effect{Kind: owner.LogFree, Cookies: new([]*uint64)}
	if n := testing.AllocsPerRun(1000, func() { o.do(nil, e) }); n != 0 {
		t.Errorf("%v allocations for an effect", n)
	}
}
