package worker

import (
	"context"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// asksFor waits until the executor's client asks for the bytes of an object.
func (p *peer) asksFor(id ids.ObjectID) {
	p.t.Helper()
	await(p, "a Get", func(log []wire.Msg) (bool, bool) {
		for _, m := range of[*wire.Get](log) {
			if m.ID == id && m.Fetch {
				return true, true
			}
		}
		return false, false
	})
}

// A call that went straight comes with the values of its references; a stored one the executor reads itself, in place, and lets go of at the end.
func TestAStraightCallsArgumentsAreRead(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	copy(s.arena[100:], "stored")
	var got []string
	var place *byte
	opts := s.handle("f", wire.TaskActorCall, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		for _, in := range c.Inputs {
			got = append(got, string(in.Value.Meta)+string(in.Value.Data))
		}
		place = &c.Inputs[2].Value.Data[0]
		if !c.Inputs[2].InPlace || c.Inputs[1].InPlace {
			t.Error("where the values lie is not said")
		}
		return out("ok"), nil, nil
	})
	inline, stored := ids.RootTask(9, 1).Return(0), ids.RootTask(9, 2).Return(0)
	call := func() *asked {
		return s.ask(opts, func(a *asked) {
			a.spec.Args = []wire.Arg{{Value: wire.Value{Data: []byte("plain")}}, {Ref: inline}, {Ref: stored}}
			a.args = []wire.ArgValue{
				{Index: 1, Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: []byte("inline")}}},
				{Index: 2, Result: wire.Result{Kind: wire.ResultStored, Size: 6, Value: wire.Value{Meta: []byte("m:")}}},
			}
		})
	}
	a := call()
	s.asksFor(stored)
	s.e.Deliver([]wire.Msg{&wire.Resolved{ID: stored, Fetch: true, Extent: wire.Extent{Off: 100, Size: 64}, Result: wire.Result{Kind: wire.ResultStored, Size: 6, Value: wire.Value{Meta: []byte("m:")}}}})
	a.results()
	if len(got) != 3 || got[0] != "plain" || got[1] != "inline" || got[2] != "m:stored" {
		t.Errorf("it has read %q", got)
	}
	if !lendsCopies && place != &s.arena[100] {
		t.Error("a stored argument was copied")
	}
	s.c.Flush()
	await(s.peer, "an Unpin", func(log []wire.Msg) (bool, bool) { return true, len(of[*wire.Unpin](log)) > 0 })

	stored = ids.RootTask(9, 4).Return(0)
	a = call()
	s.asksFor(stored)
	s.e.Deliver([]wire.Msg{&wire.Resolved{ID: stored, Fetch: true, Result: wire.Result{Kind: wire.ResultError, Err: errs.New(errs.CodeObjectLost, "gone")}}})
	a.fails(errs.CodeObjectLost)

	stored = ids.RootTask(9, 3).Return(0)
	a = call()
	s.asksFor(stored)
	a.k.Cancel(direct.Wish{})
	a.fails(errs.CodeCancelled)
	s.ask(opts, func(a *asked) { a.spec.Args = []wire.Arg{{Ref: inline}} }).fails(errs.CodeProtocol) // without its value
}
