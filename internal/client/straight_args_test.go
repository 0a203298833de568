package client

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// reader is an actor whose calls give what their argument is.
func reader(t *testing.T) (a *host, ran chan string) {
	ran = make(chan string, 10)
	a = newHost(t, nil)
	a.runs = func(k talk.Straight) *direct.Outcome {
		got := "nothing"
		if args := k.Arguments(); len(args) > 0 {
			got = string(args[0].Result.Value.Data)
			if args[0].Result.Kind == wire.ResultStored {
				got = "stored"
			}
		}
		ran <- got
		return says(got)
	}
	return a, ran
}

func withRef(id ids.ObjectID) func(*wire.TaskSpec) {
	return func(s *wire.TaskSpec) { s.Args = []wire.Arg{{Value: wire.Value{Data: []byte("first")}}, {Ref: id}} }
}

// object is one that the owner knows, and that is not resolved.
func (a *host) object() *Handle {
	id := a.c.Root().NextTask().Return(0)
	h := a.c.Bind(id)
	a.until("the owner knows it", func() bool { return a.held[id] })
	return h
}

// A call with a reference as an argument goes when its value is there, and what is called behind it goes behind it.
func TestAnArgumentIsWaitedFor(t *testing.T) {
	a, ran := reader(t)
	arg := a.object()
	_, h1 := a.call(plain, withRef(arg.ID()))
	_, h2 := a.call(plain)
	a.until("the argument is asked for", func() bool { return len(a.subs[arg.ID()]) == 1 })
	arg.Release() // the call holds it
	if len(ran) > 0 {
		t.Error("a call runs without its argument")
	}
	a.resolveInline(arg.ID(), "value")
	wantValue(t, a.c, h1[0], "value")
	wantValue(t, a.c, h2[0], "nothing")
	if first := <-ran; first != "value" {
		t.Errorf("what was called behind it ran first: %s", first)
	}
	a.c.Flush()
	a.until("it is released", func() bool { return !a.held[arg.ID()] })
	_, h3 := a.call(plain, func(s *wire.TaskSpec) { s.Args = []wire.Arg{{Ref: h1[0].Passed()}} }) // it is there
	wantValue(t, a.c, h3[0], "value")
}

// A stored argument comes as what it is: the actor's process reads it.
func TestAStoredArgumentIsNotFetched(t *testing.T) {
	a, _ := reader(t)
	arg := a.object()
	_, h := a.call(plain, withRef(arg.ID()))
	a.until("the argument is asked for", func() bool { return len(a.subs[arg.ID()]) == 1 && !a.subs[arg.ID()][0].Fetch })
	a.resolveStored(arg.ID(), strings.Repeat("x", 2*fakeInline))
	wantValue(t, a.c, h[0], "stored")
}

// A failed argument is the call's error; those behind it in a chain pass it on as it is.
func TestAnArgumentFails(t *testing.T) {
	a, ran := reader(t)
	arg := a.object()
	first, h1 := a.call(&wire.TaskOptions{Func: "first", NumReturns: 1}, withRef(arg.ID()))
	_, h2 := a.call(plain, withRef(h1[0].Passed()))
	a.resolve(arg.ID(), wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeTaskFailed, "no such file")})
	_, err := a.c.Get1(t.Context(), h1[0])
	if e := errs.From(err); e.Code != errs.CodeTaskFailed || !strings.Contains(e.Msg, "an argument of first failed") || e.Task != first.ID.String() || len(e.Cause) != 1 {
		t.Errorf("it has come to %v", err)
	}
	if _, err2 := a.c.Get1(t.Context(), h2[0]); err2 == nil || err2.Error() != err.Error() {
		t.Errorf("what uses it has come to %v", err2)
	}
	_, h3 := a.call(plain, withRef(h2[0].Passed())) // the error is there
	if _, err3 := a.c.Get1(t.Context(), h3[0]); err3 == nil || err3.Error() != err.Error() {
		t.Errorf("what is called later has come to %v", err3)
	}
	if len(ran) > 0 {
		t.Error("a call ran without its argument")
	}
}

// A call that is cancelled waits for its argument no longer.
func TestACallIsCancelledBeforeItsArgumentIsThere(t *testing.T) {
	a, _ := reader(t)
	arg := a.object()
	spec, h := a.call(plain, withRef(arg.ID()))
	arg.Release()
	if err := a.c.Cancel(wire.Cancel{Task: spec.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Get1(t.Context(), h[0]); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("it has come to %v", err)
	}
	a.c.Flush()
	a.until("the argument is let go of", func() bool { return !a.held[arg.ID()] })
	_, h = a.call(plain)
	wantValue(t, a.c, h[0], "nothing")
}

// What goes by the owner in the end has its arguments resolved there.
func TestTheOwnerResolvesArguments(t *testing.T) {
	a, _ := reader(t)
	a.way.ByOwner = true
	arg := a.object()
	spec, h := a.call(plain, withRef(arg.ID()))
	a.until("it is submitted though the argument is not there", func() bool {
		subs := saw[*wire.Submit](a)
		return subs[len(subs)-1].Spec == spec
	})
	a.resolveInline(h[0].ID(), "by the owner")
	wantValue(t, a.c, h[0], "by the owner")
	a.resolveInline(arg.ID(), "late")
}

// What a call refers to is known to the owner before the call is on its way: also a submit that was kept back.
func TestASubmitIsNotKeptBackBehindACall(t *testing.T) {
	a, ran := reader(t)
	_, h := a.call(plain) // there is a way
	wantValue(t, a.c, h[0], "nothing")
	o := &a.c.outbox
	o.mu.Lock()
	o.cork.pairs, o.cork.since = corkAfter, 0 // as after submits that were waited for
	o.mu.Unlock()
	_, hs := a.submit(plain)
	before := make(chan bool, 1)
	runs := a.runs
	a.runs = func(k talk.Straight) *direct.Outcome {
		o.mu.Lock()
		before <- len(o.cork.msgs) == 0
		o.mu.Unlock()
		return runs(k)
	}
	_, h = a.call(plain, func(s *wire.TaskSpec) { s.Args = []wire.Arg{{Value: wire.Value{Refs: []ids.ObjectID{hs[0].Passed()}}}} })
	wantValue(t, a.c, h[0], "nothing")
	if !testkit.Receive(t, "the call", before) {
		t.Error("the call runs before the owner knows what it refers to")
	}
	if n := len(ran); n != 2 {
		t.Errorf("%d calls ran", n)
	}
}
