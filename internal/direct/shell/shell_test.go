package shell

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// Many goroutines call one actor, each with many calls under way. Each answer comes to its own call, and calls of one caller begin in order, though cores are made anew
// all the time.
func TestCallsAndAnswersFindEachOther(t *testing.T) {
	const callers, calls = 8, 1000
	begun := make([]atomic.Int64, callers)
	of := make(map[ids.TaskID]int)
	for i := range callers {
		of[caller(i)] = i
	}
	run := func(in *direct.Incoming) direct.Finished {
		if was := begun[of[in.Payload.(*Call).Caller]].Swap(int64(seqOf(in))); int(was)+1 != seqOf(in) {
			t.Errorf("call %d of a caller begins after its %d", seqOf(in), was)
		}
		return echo(in)
	}
	with(t, run, func(t *testing.T, n *node) {
		var all, others sync.WaitGroup
		var over atomic.Bool
		others.Go(func() {
			for rnd := rand.New(rand.NewPCG(testkit.Seeds(t, 1)[0], 1)); !over.Load(); runtime.Gosched() {
				n.rebuild(rnd.IntN(2) == 0)
			}
		})
		for i := range callers {
			all.Go(func() {
				var open []*Call
				for seq := 1; seq <= calls; seq++ {
					open = append(open, n.call(caller(i), seq))
					if len(open) < 100 && seq < calls {
						continue
					}
					for _, k := range open {
						if o := k.get(); o.Err != nil || o.Value != k.Own.(*waiting).seq {
							t.Errorf("call %d of caller %d came to %+v", k.Own.(*waiting).seq, i, o)
						}
						k.Released()
					}
					open = open[:0]
				}
			})
		}
		all.Wait()
		over.Store(true)
		others.Wait()
		n.rest()
		if c := n.p.Callee(theActor); c.calls != nil || n.p.held.Load() != 0 || n.panics.Load() != 0 {
			t.Errorf("calls are left: %v; %d bytes of results; %d panics", c.calls != nil, n.p.held.Load(), n.panics.Load())
		}
	})
}

// rebuild makes the cores anew.
func (n *node) rebuild(both bool) {
	c := n.p.Callee(theActor)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rebuild()
	if both {
		n.box.mu.Lock()
		defer n.box.mu.Unlock()
		n.box.rebuild()
	}
}

// A call that panics, or ends its goroutine, ends the instance. Calls that have not begun are run by the next one, in order; the one at fault is run again as often as it
// has retries.
func TestAPanicEndsTheInstance(t *testing.T) {
	for how, fail := range map[string]func(){"panics": func() { panic("no") }, "ends its goroutine": runtime.Goexit} {
		tries := 0
		run := func(in *direct.Incoming) direct.Finished {
			if seqOf(in) == 3 {
				if tries++; in.Tries != int32(tries-1) {
					t.Errorf("%s: try %d comes as one after %d retries", how, tries, in.Tries)
				}
				if tries < 3 {
					fail()
				}
			}
			return echo(in)
		}
		with(t, run, func(t *testing.T, n *node) {
			n.retries = 2
			var calls []*Call
			for seq := 1; seq <= 10; seq++ {
				calls = append(calls, n.call(caller(1), seq))
			}
			for i, k := range calls {
				if o := k.get(); o.Err != nil || o.Value != i+1 {
					t.Errorf("%s: call %d came to %+v", how, i+1, o)
				}
			}
			n.rest()
			if n.instances != 3 {
				t.Errorf("%s: there were %d instances, want 3", how, n.instances)
			}
		})
	}
}

// Where there is no channel calls go by the owner; where the actor is dead they end.
func TestThereIsNoWay(t *testing.T) {
	with(t, echo, func(t *testing.T, n *node) {
		n.byOwner = true
		if o := n.call(caller(1), 1).get(); o.Value != "by the owner" {
			t.Errorf("it came to %+v", o)
		}
		n.rest()
		n.dead = true
		if o := n.call(caller(1), 2).get(); o.Err == nil || o.Err.Code != errs.CodeActorDied {
			t.Errorf("it came to %+v", o)
		}
	})
}

// A reference leaves when the owner knows of the result; and of results that are too many, the owner is given the oldest.
func TestResultsGoToTheOwner(t *testing.T) {
	with(t, echo, func(t *testing.T, n *node) {
		n.p.budget = 16
		k := n.call(caller(1), 1)
		k.get()
		k.Leaves()
		<-k.Own.(*waiting).departs
		for seq := 2; seq <= 6; seq++ {
			n.call(caller(1), seq).get()
		}
		n.rest()
		if got := n.adopted.Load(); got != 1+3 {
			t.Errorf("the owner has adopted %d calls, want one that has left and three beyond the budget", got)
		}
		if n.p.held.Load() > 16 {
			t.Errorf("%d bytes are kept", n.p.held.Load())
		}
	})
}

// An event that brings two cores down is left out: calls end, or the instance does, and what comes later goes on.
func TestAnEventThatBringsCoresDownIsLeftOut(t *testing.T) {
	var runs, hold chan bool
	run := func(in *direct.Incoming) direct.Finished {
		if seqOf(in) == 2 {
			runs <- true
			<-hold
		}
		return echo(in)
	}
	with(t, run, func(t *testing.T, n *node) {
		runs, hold = make(chan bool, 1), make(chan bool, 1)
		wantFailed := func(what string, k *Call) {
			t.Helper()
			if o := k.get(); o.Err == nil || o.Err.Code != errs.CodeComponentFailed {
				t.Errorf("%s came to %+v", what, o)
			}
		}
		n.call(caller(1), 1).get()
		n.p.Callee(theActor).tell(direct.Argument{})
		running := n.call(caller(1), 2) // on a second channel
		<-runs
		n.p.Callee(theActor).tell(&direct.Answered{Channel: 2, No: 1, AckNo: 1})
		wantFailed("a call whose answer nobody understands", running)
		hold <- true
		wantFailed("a call that nobody can send", n.call(caller(1), 3, func(k *Call) { k.Group = -1 }))
		if o := n.call(caller(1), 4).get(); o.Err != nil || n.panics.Load() != 6 {
			t.Errorf("the next call came to %+v, after %d panics", o, n.panics.Load())
		}
		n.box.Tell(&direct.Finished{})
		if o := n.call(caller(1), 5).get(); o.Err != nil {
			t.Errorf("after the mailbox of an instance has failed, a call came to %+v", o)
		}
	})
}

// A call that is cancelled with force ends while its method still runs, and so does one whose deadline has passed; the next call of the actor does not wait for either.
func TestACallEndsBeforeItsMethod(t *testing.T) {
	var hold chan bool
	run := func(in *direct.Incoming) direct.Finished {
		if seqOf(in) < 3 {
			<-hold
		}
		return echo(in)
	}
	for what, end := range map[string]func(k *Call){
		"forced":  func(k *Call) { k.Cancel(direct.Wish{Force: true}) },
		"expired": func(k *Call) { k.Expired() },
	} {
		with(t, run, func(t *testing.T, n *node) {
			hold = make(chan bool)
			k := n.call(caller(1), 1)
			n.rest()
			end(k)
			if o := k.get(); o.Err == nil {
				t.Errorf("%s: it came to %+v", what, o)
			}
			if what == "expired" {
				n.box.Tell(direct.Overdue{Call: &k.in})
			}
			if o := n.call(caller(1), 3).get(); o.Err != nil {
				t.Errorf("%s: the next call came to %+v", what, o)
			}
			close(hold)
		})
	}
}

// A channel on which there was nothing for some sweeps is closed, and the next call opens another. Goroutines with nothing to run end, and an actor that is not called is
// forgotten.
func TestWhatIsNotUsedIsLetGo(t *testing.T) {
	with(t, echo, func(t *testing.T, n *node) {
		for seq := 1; seq <= 3; seq++ {
			k := n.call(caller(1), seq)
			if o := k.get(); o.Err != nil {
				t.Fatal(o.Err)
			}
			k.Released()
			for i := range 4 {
				if i == 2 && (n.open.Load() != 1 || n.running.Load() != 1) {
					t.Errorf("after 2 sweeps %d channels are open, and %d goroutines run", n.open.Load(), n.running.Load())
				}
				n.p.Sweep(3)
				n.box.Sweep(3)
				n.rest()
			}
			if n.open.Load() != 0 || n.running.Load() != 0 || len(n.p.callees) != 0 {
				t.Errorf("%d channels are open, %d goroutines run, %d actors are known", n.open.Load(), n.running.Load(), len(n.p.callees))
			}
		}
	})
}

// A channel is cut while calls are under way. Each has an end, and none runs twice, since they have no retries.
func TestAChannelIsCut(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		ran := make([]int, 101)
		run := func(in *direct.Incoming) direct.Finished {
			ran[seqOf(in)]++
			return echo(in)
		}
		with(t, run, func(t *testing.T, n *node) {
			n.call(caller(1), 1).get()
			at := 2 + rnd.IntN(98)
			var calls []*Call
			for seq := 2; seq <= 100; seq++ {
				if calls = append(calls, n.call(caller(1), seq)); seq == at {
					n.p.Callee(theActor).Cut(1)
				}
			}
			for _, k := range calls {
				if o := k.get(); o.Err != nil && o.Err.Code != errs.CodeActorUnavailable {
					t.Errorf("call %d came to %v", k.Own.(*waiting).seq, o.Err)
				}
			}
			n.rest()
			for seq, times := range ran {
				if times > 1 {
					t.Fatalf("seed %d: call %d ran %d times", seed, seq, times)
				}
			}
		})
	}
}

// A channel to an instance that has ended before it is found leads nowhere: what was to go on it has not begun, and waits for the next instance.
func TestAChannelLeadsNowhere(t *testing.T) {
	with(t, echo, func(t *testing.T, n *node) {
		n.lost = true
		if o := n.call(caller(1), 1).get(); o.Err != nil || o.Value != 1 {
			t.Errorf("it came to %+v", o)
		}
	})
}

// A process that makes no calls any more closes its channels. What runs ends, and nobody there hears of it.
func TestAProcessCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := make(chan struct{})
		n := newNode(direct.HostConfig{Groups: []int{1}, Unread: 4096}, func(in *direct.Incoming) direct.Finished { <-run; return echo(in) })
		k := n.call(caller(1), 1)
		n.rest()
		n.p.Close()
		close(run)
		n.rest()
		select {
		case o := <-k.Own.(*waiting).end:
			t.Errorf("it came to %+v", o)
		default:
		}
		n.box.Sweep(0)
	})
}
