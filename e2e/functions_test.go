package e2e

import (
	"context"
	"errors"
	"os"

	"mobula"
)

// What the tests run beside modes_test.go's.
var (
	exits = mobula.Register1("e2e/exits", func(_ context.Context, code int) (int, error) {
		os.Exit(code)
		return 0, nil
	})
	counterPlus = mobula.RegisterMethod1(counterType, "Plus", (*counter).Plus)
)

// Plus changes nothing, so a call may run twice.
func (c *counter) Plus(_ context.Context, by int) (int, error) { return c.n + by, nil }

func isErr(err, want error) bool { return errors.Is(err, want) }
