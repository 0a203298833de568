package node

import (
	"log/slog"
	"testing"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/node/observe"
	"mobula/raylet/oplog"
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
	o := &ownerActor{owners: &owners{base: &base{}}, job: 1, core: core}
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

// A core that panics at an event that the last one had kept back has not come to those behind it.
func TestTheNextCoreIsGivenWhatTheLastOneHasNotComeTo(t *testing.T) {
	start := actors.Start{Restart: 2, Reason: &actors.PanicError{Phase: "start"}}
	gone := owner.ClientGone{Client: 8}
	behind := []owner.Event{gone, owner.Poisoned{Client: 9}}
	o := paused(t)
	o.first = append([]owner.Event{nil, answer(5)}, behind...)
	o.step(answer(5))
	if got := o.keptBack(start); len(got) != 3 || got[2] != owner.Event(gone) {
		t.Errorf("while it waits for a client: %+v", got)
	}
	o = paused(t)
	o.step(answer(6))
	o.first = append([]owner.Event{nil, gone}, behind...)
	o.step(gone)
	if got := o.keptBack(start); len(got) != 2 || got[0] != owner.Event(gone) || got[1] != owner.Event(gone) {
		t.Errorf("when it has gone on: %+v", got)
	}
	for len(o.first) > 0 {
		o.step(gone)
	}
	if got := o.keptBack(start); len(got) != 0 {
		t.Errorf("when it has stepped all: %+v", got)
	}
}

// An effect is handed on by value, several for each task: none is to be moved to the heap.
func TestAnEffectStaysOffTheHeap(t *testing.T) {
	log, err := oplog.Open(t.TempDir(), oplog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := &ownerActor{owners: &owners{base: &base{}}, job: 1, log: log}
	e := owner.Effect{Kind: owner.LogFree, Cookies: new([]*uint64)}
	if n := testing.AllocsPerRun(1000, func() { o.do(nil, e) }); n != 0 {
		t.Errorf("%v allocations for an effect", n)
	}
}

// The owner of a job of before the node's restart waits for its clients, even if nothing was logged: that of a new job waits for nobody, nor does one that
// follows it before the job's first client has joined.
func TestTheOwnerOfAJobOfBeforeWaits(t *testing.T) {
	for _, of := range []struct {
		before  bool
		restart int
	}{{false, 0}, {false, 1}, {true, 0}} {
		log, err := oplog.Open(t.TempDir(), oplog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		obs := observe.New(observe.Config{Life: t.Context(), Log: slog.New(slog.DiscardHandler)})
		o := &ownerActor{owners: &owners{base: &base{obs: obs}}, job: 1, log: log, ofBefore: of.before}
		o.waits.Store(of.before)
		if _, _, err := o.build(actors.Start{Restart: of.restart}); err != nil {
			t.Fatal(err)
		}
		if waits := o.core.Gauges().Recovering; waits != of.before {
			t.Errorf("%+v: it waits: %v", of, waits)
		}
		obs.Close()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}
