package e2e

import (
	"context"
	"errors"
	"os"
	"time"

	"mobula"
)

// What the tests run beside modes_test.go's.
var (
	exits = mobula.Register1("e2e/exits", func(_ context.Context, code int) (int, error) {
		os.Exit(code)
		return 0, nil
	})
	// sleepy takes some milliseconds, or until its context ends, and gives v.
	sleepy = mobula.Register2("e2e/sleepy", func(ctx context.Context, ms, v int) (int, error) {
		t := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
			return v, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	})
	counterPlus = mobula.RegisterMethod1(counterType, "Plus", (*counter).Plus)
)

// Plus changes nothing, so a call may run twice.
func (c *counter) Plus(_ context.Context, by int) (int, error) { return c.n + by, nil }

func isErr(err, want error) bool { return errors.Is(err, want) }
