package disk

import (
	"context"
	"errors"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// hoarder has objects four times the store, so that most are in spill files: every other one was put,
// the rest are results of tasks.
type hoarder struct {
	refs []mobula.Ref[[]float64]
}

const hoardEach = harness.MiB / 2

func hoard(t *testing.T, ctx context.Context, n int) *hoarder {
	t.Helper()
	h := &hoarder{}
	for i := range n {
		if i%2 == 1 {
			h.refs = append(h.refs, harness.Fill.Go(ctx, mobula.V(hoardEach/8), mobula.V(float64(i))))
			continue
		}
		ref, err := mobula.Put(ctx, harness.Array(hoardEach, float64(i)))
		if err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		h.refs = append(h.refs, ref)
	}
	if _, rest, err := mobula.Wait(ctx, h.refs, n); err != nil || len(rest) > 0 {
		t.Fatalf("%d are not made: %v", len(rest), err)
	}
	return h
}

// seen is what a look at every object found.
type seen struct{ lost, noDisk int }

// check looks at every object while something is wrong with the disk: a result is there or is made again, a
// put may be lost, what is spilled may have to wait for the disk; nothing holds anything else.
func (h *hoarder) check(t *testing.T, ctx context.Context) (s seen) {
	t.Helper()
	for i, ref := range h.refs {
		xs, err := ref.Get(ctx)
		switch {
		case err == nil && harness.Holds(xs, hoardEach, float64(i)):
		case err == nil:
			t.Fatalf("object %d holds %d elements, or wrong ones", i, len(xs))
		case i%2 == 0 && errors.Is(err, mobula.ErrObjectLost):
			s.lost++
		case errors.Is(err, mobula.ErrOutOfDisk):
			s.noDisk++
		default:
			t.Fatalf("object %d: %v", i, err)
		}
	}
	return s
}

// whole fails unless every object is there.
func (h *hoarder) whole(t *testing.T, ctx context.Context) {
	t.Helper()
	if s := h.check(t, ctx); s != (seen{}) {
		t.Errorf("of %d objects %d are lost, %d wait for the disk", len(h.refs), s.lost, s.noDisk)
	}
}

func (h *hoarder) release() {
	for _, r := range h.refs {
		r.Release()
	}
	h.refs = nil
}
