package shell

import (
	"testing"
	"time"

	"mobula/internal/direct"
)

// Who makes very many calls of an actor is held up until half of them have ended; for a moment if they do not end, and then there is room for more.
func TestPace(t *testing.T) {
	var goOn chan struct{}
	run := func(in *direct.Incoming) direct.Finished {
		if in.Payload.(*Call).Own.(*waiting).seq < 0 {
			<-goOn
		}
		return echo(in)
	}
	with(t, run, func(t *testing.T, n *node) {
		goOn = make(chan struct{})
		n.call(caller(1), 1).get() // there is a channel
		c := n.p.Callee(theActor)
		begin := func(seq int) (crowded *Callee) {
			k := &Call{Own: &waiting{seq: seq, end: make(chan *direct.Outcome, 1)}, Tells: true}
			k.ID, k.Caller, k.Bytes = caller(2), caller(2), 64
			return n.p.Begin(theActor, k)
		}
		for i := range paceCalls {
			if got := begin(-1 - i); (got == c) != (i == paceCalls-1) {
				t.Fatalf("call %d of %d: crowded is %v", i+1, paceCalls, got == c)
			}
		}
		begun := time.Now()
		c.Pause(t.Context())
		if took := time.Since(begun); took != paceMost {
			t.Errorf("who is held up in vain is so for %v, want %v", took, paceMost)
		}
		if begin(1) != nil {
			t.Error("there is no more room after that")
		}
		over := 0
		for range paceCalls - 2 {
			if begin(1) != nil {
				over++
			}
		}
		if begin(1) == nil || over != 0 {
			t.Errorf("there is not room for twice as many calls")
		}
		held := true
		go func() {
			c.Pause(t.Context())
			held = false
		}()
		n.rest()
		for range paceCalls - 1 {
			goOn <- struct{}{}
		}
		n.rest()
		if !held {
			t.Error("who is held up goes on when less than half of the calls have ended")
		}
		goOn <- struct{}{}
		n.rest()
		if held || c.pace.most != paceCalls || c.pace.ease != nil {
			t.Errorf("all calls have ended: somebody is held up is %v, and there is room for %d", held, c.pace.most)
		}
		c.Pause(t.Context()) // there is room
	})
}
