//go:build !invariants

// Builds with invariants give a task copies of its arguments, which they spoil when it has ended.

package disk

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

var scribble = mobula.Register1("e2e/scribble", func(_ context.Context, v []float64) (float64, error) {
	v[0] = 7
	return v[0], nil
})

type scribbler struct{}

var (
	scribblers = mobula.RegisterActor0("e2e/scribbler", func(context.Context) (*scribbler, error) { return &scribbler{}, nil })
	scribbles  = mobula.RegisterMethod1(scribblers, "Write", func(_ *scribbler, _ context.Context, v []float64) (float64, error) {
		v[0] = 7
		return v[0], nil
	})
)

// A task that writes to an argument, which others read too, fails with an error that says so; its process, the user's own where the node is
// embedded, goes on, and the value stays what it was.
func TestAWriteToWhatIsReadOnlyIsNamed(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: 64 << 20}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		ref, err := mobula.Put(ctx, make([]float64, 1<<18))
		if err != nil {
			t.Fatal(err)
		}
		a, err := scribblers.Spawn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the same process
			for what, call := range map[string]mobula.Ref[float64]{"e2e/scribble": scribble.Go(ctx, ref), "Write": scribbles.Go(ctx, a, ref)} {
				_, err := call.Get(ctx)
				if _, ok := errors.AsType[*mobula.TaskError](err); !ok || errors.Is(err, mobula.ErrWorkerCrashed) || !strings.Contains(err.Error(), what) ||
					!strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), "slices.Clone") {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		v, err := ref.Get(ctx)
		if err != nil || v[0] != 0 {
			t.Errorf("the value is %v, %v", v[:1], err)
		}
	})
}
