package worker

import (
	"context"
	"strings"
	"testing"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// User code may keep the context of a call: it stays that call's, whatever runs after it.
func TestAKeptContextStaysItsCalls(t *testing.T) {
	s := newStraight(t, Config{}, (*peer).plain)
	kept := make(map[ids.TaskID]context.Context)
	keep := s.handle("keep", wire.TaskActorCall, func(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
		kept[client.FromContext(ctx).Task] = ctx
		return out("kept"), nil, nil
	})
	large := wire.Arg{Value: wire.Value{Data: []byte(strings.Repeat("x", blockCost))}}
	for i := range 100 {
		s.ask(keep, func(a *asked) {
			if i%7 == 0 {
				a.spec.Args = []wire.Arg{large}
				a.k.Bytes = wire.CostOfSpec(a.spec)
			}
		}).results()
	}
	if len(kept) != 100 {
		t.Errorf("%d calls have run", len(kept))
	}
	for id, ctx := range kept {
		if tc := client.FromContext(ctx); tc.Task != id || tc.Spec.ID != id || context.Cause(ctx) != errReturned {
			t.Errorf("the context of call %v is that of %v, and has ended because of %v", id, tc.Task, context.Cause(ctx))
		}
	}
}
