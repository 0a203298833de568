package shell

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// A quiet call may be used again when its answer was acknowledged, and not where somebody may have it still: who has found it, or waits until it was sent, the owner, or
// another instance; nor where it has ended in another way than that its Run has.
func TestWhichCallsAreUsedAgain(t *testing.T) {
	var stop, goOn chan struct{}
	run := func(in *direct.Incoming) direct.Finished {
		switch seqOf(in) {
		case 0:
			stop <- struct{}{}
			<-goOn
		case 2:
			return direct.Finished{Outcome: &direct.Outcome{Err: errs.New(errs.CodePanic, "no")}}
		}
		return direct.Finished{Outcome: &direct.Outcome{}}
	}
	with(t, run, func(t *testing.T, n *node) {
		stop, goOn = make(chan struct{}), make(chan struct{})
		n.call(caller(1), 1).get() // there is a channel
		again := make(map[*Call]bool)
		n.spare = func(k *Call) { again[k] = true }
		quiet := func(k *Call) { k.Quiet, k.Tells, k.Spare = true, true, true }
		first := n.call(caller(1), 0)
		<-stop
		plain := n.call(caller(2), 10, quiet)
		fails := n.call(caller(2), 2, quiet)
		kept := n.call(caller(2), 11, func(k *Call) { k.Quiet, k.Tells = true, true })
		found := n.call(caller(2), 12, quiet)
		if is := n.p.Find(theActor, func(k *Call) bool { return k == found }); len(is) != 1 {
			t.Fatalf("found %d calls, want 1", len(is))
		}
		left := n.call(caller(2), 13, quiet)
		left.Leaves()
		cancelled := n.call(caller(2), 14, quiet)
		cancelled.Cancel(direct.Wish{})
		n.rest()
		goOn <- struct{}{}
		first.get()
		for _, k := range []*Call{plain, fails, kept, found, left, cancelled} {
			k.get()
		}
		if len(again) > 0 {
			t.Errorf("%d calls are used again before their answers were acknowledged", len(again))
		}
		n.p.Sweep(100)
		looked := n.call(caller(2), 15, quiet)
		n.rest()
		if !again[plain] || len(again) != 1 {
			t.Errorf("%d calls are used again, and the one that nobody has: %v", len(again), again[plain])
		}
		found.Cancel(direct.Wish{Force: true}) // who comes late finds that it has ended
		left.Released()
		looked.get()

		// What was looked at, or waited for, is not used again.
		last := n.call(caller(1), 0)
		<-stop
		seen := n.call(caller(2), 16, quiet)
		if len(n.p.Underway()) != 2 {
			t.Error("two calls are under way")
		}
		goOn <- struct{}{}
		last.get()
		seen.get()
		n.p.Sweep(100)
		if again[seen] || !again[looked] {
			t.Errorf("the call that was looked at is used again: %v; the one before it: %v", again[seen], again[looked])
		}
	})
}

// A call that waited for a channel, and for which somebody waited until it was sent, is not used again; nor is one that was sent to two instances.
func TestCallsThatWaitedAreNotUsedAgain(t *testing.T) {
	for _, panics := range []bool{false, true} {
		fell := !panics
		run := func(*direct.Incoming) direct.Finished {
			if !fell {
				fell = true
				panic("no")
			}
			return direct.Finished{Outcome: &direct.Outcome{}}
		}
		with(t, run, func(t *testing.T, n *node) {
			n.retries = 1
			again := make(map[*Call]bool)
			n.spare = func(k *Call) { again[k] = true }
			quiet := func(k *Call) { k.Quiet, k.Tells, k.Spare = true, true, true }
			waits := n.call(caller(1), 1, quiet)
			if !n.p.Callee(theActor).WhenSent(func() {}) {
				t.Fatal("the call was sent without a channel")
			}
			other := n.call(caller(1), 2, quiet)
			waits.get()
			other.get()
			n.p.Sweep(100)
			if again[waits] || again[other] == panics {
				t.Errorf("with a panic %v: the call that was waited for is used again: %v; the other one: %v", panics, again[waits], again[other])
			}
		})
	}
}

// Many callers tell the actor things with calls that are used again, while others find these, cancel them late and look at them, and cores are made anew. Each call comes once
// at most, in its caller's order, and none is cancelled that was not meant.
func TestCallsAreUsedAgainAmongOthers(t *testing.T) {
	const callers, calls = 4, 3000
	var ran, cancelled [callers][calls + 1]atomic.Int32
	var last [callers]atomic.Int64
	of := make(map[ids.TaskID]int)
	for i := range callers {
		of[caller(i)] = i
	}
	run := func(in *direct.Incoming) direct.Finished {
		k := in.Payload.(*Call)
		i, seq := of[k.Caller], seqOf(in)
		if ran[i][seq].Add(1) != 1 || last[i].Swap(int64(seq)) >= int64(seq) || in.ID != ids.Derive(k.Caller, uint64(seq)) {
			t.Errorf("call %d of caller %d runs out of order, or again", seq, i)
		}
		return direct.Finished{Outcome: &direct.Outcome{}}
	}
	with(t, run, func(t *testing.T, n *node) {
		var pool sync.Pool
		var used atomic.Int64
		n.spare = func(k *Call) {
			used.Add(1)
			*k = Call{}
			pool.Put(k)
		}
		var all, others sync.WaitGroup
		var over atomic.Bool
		rnd := rand.New(rand.NewPCG(testkit.Seeds(t, 1)[0], 1))
		others.Go(func() {
			for !over.Load() {
				var late []*Call
				for _, k := range n.p.Find(theActor, func(*Call) bool { return rnd.IntN(50) == 0 }) {
					cancelled[of[k.Caller]][k.Own.(*waiting).seq].Store(1)
					late = append(late, k)
				}
				n.p.Underway()
				n.rebuild(rnd.IntN(2) == 0)
				runtime.Gosched()
				for _, k := range late {
					k.Cancel(direct.Wish{})
				}
			}
		})
		round := func(from, to int) {
			for i := range callers {
				all.Go(func() {
					ends := make(chan *direct.Outcome, calls)
					for seq := from; seq <= to; seq++ {
						k, _ := pool.Get().(*Call)
						if k == nil {
							k = new(Call)
						}
						k.Own = &waiting{seq: seq, end: ends}
						k.ID, k.Caller, k.Bytes = ids.Derive(caller(i), uint64(seq)), caller(i), 64
						k.Quiet, k.Tells, k.Spare = true, true, true
						n.p.Begin(theActor, k)
					}
					for range 1 + to - from {
						<-ends
					}
				})
			}
			all.Wait()
		}
		round(1, calls-100)
		over.Store(true)
		others.Wait()
		round(calls-99, calls) // nobody looks at these, so they are used again
		n.rest()
		for i := range callers {
			for seq := 1; seq <= calls; seq++ {
				if ran[i][seq].Load()+cancelled[i][seq].Load() == 0 {
					t.Fatalf("call %d of caller %d did not run, and nobody has cancelled it", seq, i)
				}
			}
		}
		if c := n.p.Callee(theActor); used.Load() == 0 || c.calls != nil || c.under != 0 || n.panics.Load() != 0 {
			t.Errorf("%d calls were used again; calls are left: %v; %d panics", used.Load(), c.calls != nil, n.panics.Load())
		}
	})
}
