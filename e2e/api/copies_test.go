package api

import (
	"context"
	"testing"

	"mobula"
)

func (k *keeper) Spoil(_ context.Context, b []byte) (byte, error) { b[0]++; return b[0], nil }

var (
	e2eSpoil    = mobula.Register1("e2e/api/spoil", func(_ context.Context, b []byte) (byte, error) { b[0]++; return b[0], nil })
	keeperSpoil = mobula.RegisterMethod1(keepers, "Spoil", (*keeper).Spoil)
)

// A small value comes in a message, which nothing protects: who writes to it has a copy, and nobody else sees the write.
func TestWhoWritesToASmallValueHasACopy(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a, err := keepers.Spawn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{1, 1 << 10} {
			r, err := mobula.Put(ctx, make([]byte, size))
			if err != nil {
				t.Fatal(err)
			}
			v, err := r.View(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := v.Value(); err != nil {
				t.Error(err)
			} else {
				b[0] = 7
			}
			for range 2 {
				get(ctx, t, e2eSpoil.Go(ctx, r), byte(1))
				get(ctx, t, keeperSpoil.Go(ctx, a, r), byte(1))
			}
			if b, err := r.Get(ctx); err != nil || b[0] != 0 {
				t.Errorf("%d bytes: the object is changed: %v, %v", size, b[0], err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
