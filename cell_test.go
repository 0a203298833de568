package mobula

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"mobula/internal/call"
	"mobula/internal/testkit"
)

// collected collects garbage until the client holds at most n objects.
func collected(t *testing.T, f *fakeNode, n int) {
	t.Helper()
	testkit.Eventually(t, fmt.Sprintf("%d objects held at most", n), func() bool {
		if f.c.Handles() <= n {
			return true
		}
		runtime.GC()
		f.c.Flush()
		return false
	})
}

func TestDroppedReferencesAreReleased(t *testing.T) {
	_, ctx, f := startFake(t)
	func() {
		for range 10_003 { // not a whole number of blocks
			r := add.Go(ctx, V(1.0), V(1.0))
			if v, err := r.Get(ctx); err != nil || v != 2 {
				t.Fatal(v, err)
			}
		}
		for i := range 100 {
			if _, err := Put(ctx, i); err != nil {
				t.Fatal(err)
			}
			if _, err := Put(ctx, make([]byte, 200<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}()
	collected(t, f, 0)
}

func TestLargeResultsAreReleasedOneByOne(t *testing.T) {
	_, ctx, f := startFake(t)
	var keep []Ref[[]float64]
	func() {
		for i := range 64 {
			r := ones.Go(ctx, V(20_000))
			if _, err := r.Get(ctx); err != nil {
				t.Fatal(err)
			}
			if i%16 == 0 {
				keep = append(keep, r)
			}
		}
	}()
	collected(t, f, len(keep))
	for _, r := range keep {
		if v, err := r.Get(ctx); err != nil || len(v) != 20_000 {
			t.Errorf("a kept reference: %d, %v", len(v), err)
		}
	}
	runtime.KeepAlive(keep)
}

func TestArgumentsLiveUntilTheyAreSent(t *testing.T) {
	_, ctx, f := startFake(t)
	for range 200 {
		// Nothing holds the inner references but the call itself.
		r := add.Go(ctx, add.Go(ctx, V(1.0), V(1.0)), add.Go(ctx, V(1.0), V(1.0)))
		runtime.GC()
		if v, err := r.Get(ctx); err != nil || v != 4 {
			t.Fatal(v, err)
		}
	}
	collected(t, f, 16)
}

func TestBlocksServeManyGoroutines(t *testing.T) {
	_, ctx, f := startFake(t)
	done := make(chan error)
	for range 8 {
		go func() {
			done <- func() error {
				for i := range 2000 {
					v, err := inc.Go(ctx, V(i)).Get(ctx)
					if err != nil || v != i+1 {
						return context.Canceled
					}
				}
				return nil
			}()
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	collected(t, f, 0)
}

func TestAnIdleWorkerGivesBackWhatItBorrowed(t *testing.T) {
	call.CollectWhenIdle(true)
	defer call.CollectWhenIdle(false)
	_, ctx, f := startFake(t)
	func() {
		x := add.Go(ctx, V(1.0), V(1.0))
		must(t, 2.0)(nested.Go(ctx, V(box{Inner: x})).Get(ctx))
		x.Release()
	}()
	testkit.Eventually(t, "one object held: the result's, which nobody borrowed", func() bool { return f.c.Handles() <= 1 }) // no event reports a collection
}
