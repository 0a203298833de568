package harness

import (
	"context"

	"mobula"
)

// Counter is an actor that adds up what it is told.
type Counter struct{ n int }

// Inc adds, and gives the sum.
func (c *Counter) Inc(_ context.Context, by int) (int, error) { c.n += by; return c.n, nil }

// Plus changes nothing, so a call may run twice.
func (c *Counter) Plus(_ context.Context, by int) (int, error) { return c.n + by, nil }

// CounterType makes counters that begin at a number; CounterInc and CounterPlus call their methods.
var (
	CounterType = mobula.RegisterActor1("e2e/counter", func(_ context.Context, start int) (*Counter, error) { return &Counter{start}, nil })
	CounterInc  = mobula.RegisterMethod1(CounterType, "Inc", (*Counter).Inc)
	CounterPlus = mobula.RegisterMethod1(CounterType, "Plus", (*Counter).Plus)
)
