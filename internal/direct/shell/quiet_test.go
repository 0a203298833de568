package shell

import (
	"testing"

	"mobula/internal/direct"
)

// The ends of calls that nobody waits for are told together: when the mailbox has nothing to run, when they are many, at a sweep, or with one that somebody waits for, and before it.
func TestQuietCalls(t *testing.T) {
	var stop, goOn chan struct{}
	run := func(in *direct.Incoming) direct.Finished {
		if k := in.Payload.(*Call); k.Own.(*waiting).seq < 0 {
			stop <- struct{}{}
			<-goOn
		}
		return echo(in)
	}
	with(t, run, func(t *testing.T, n *node) {
		stop, goOn = make(chan struct{}), make(chan struct{})
		n.call(caller(1), 1).get() // there is a channel
		c := n.p.Callee(theActor)
		begin := func(seq int, quiet bool) *waiting {
			w := &waiting{seq: seq, end: make(chan *direct.Outcome, 1)}
			k := &Call{Own: w, Quiet: quiet, Tells: quiet}
			k.ID, k.Caller, k.Bytes = caller(2), caller(2), 64
			c.Begin(k)
			return w
		}
		told := func(ws ...*waiting) (n int) {
			for _, w := range ws {
				n += len(w.end)
			}
			return n
		}
		first := begin(-1, true)
		<-stop
		quiet := []*waiting{first}
		for i := range quietMost + 2 {
			quiet = append(quiet, begin(i+2, true))
		}
		second := begin(-2, true)
		goOn <- struct{}{}
		<-stop
		n.rest()
		if got := told(quiet...); got != quietMost {
			t.Errorf("%d of %d ends were told while a call runs, want %d", got, len(quiet), quietMost)
		}
		asked := begin(100, false)
		third := begin(-3, true)
		goOn <- struct{}{}
		<-stop
		n.rest()
		if told(asked) != 1 || told(quiet...) != len(quiet) || told(second) != 1 {
			t.Errorf("with the answer that is waited for %d of %d others were told", told(quiet...)+told(second), len(quiet)+1)
		}
		fourth := begin(-4, true)
		goOn <- struct{}{}
		<-stop
		n.rest()
		box, _, _ := n.state()
		before := told(third)
		if box.Sweep(2); before != 0 || told(third) != 1 {
			t.Errorf("behind a call that takes long %d ends were told, and with the next sweep %d", before, told(third))
		}
		goOn <- struct{}{}
		n.rest()
		if told(fourth) != 1 {
			t.Error("a mailbox that has nothing to run has not told of the last call")
		}
		if c.under != 0 {
			t.Errorf("%d calls are left", c.under)
		}
	})
}
