package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// circle is an actor whose methods wait for one another.
type circle struct{}

type circleRef = mobula.ActorRef[circle]

var (
	circles    = mobula.RegisterActor0("e2e/circle", func(context.Context) (*circle, error) { return &circle{}, nil })
	circleEnd  = mobula.RegisterMethod0(circles, "End", func(*circle, context.Context) (int, error) { return 7, nil })
	circleSelf = mobula.RegisterMethod1(circles, "Self", func(_ *circle, ctx context.Context, a circleRef) (int, error) {
		return circleEnd.Go(ctx, a).Get(ctx)
	})
	circleSoon = mobula.RegisterMethod1(circles, "Soon", func(_ *circle, ctx context.Context, a circleRef) (int, error) {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if _, err := circleEnd.Go(ctx, a).Get(short); !errors.Is(err, mobula.ErrGetTimeout) {
			return 0, err
		}
		return 1, nil
	})
	circleVia = mobula.RegisterMethod2(circles, "Via", func(_ *circle, ctx context.Context, a, b circleRef) (int, error) {
		return circleSelf.Go(ctx, b, mobula.V(a)).Get(ctx) // b waits for End of a
	})
	circleTake = mobula.RegisterMethod1(circles, "Take", func(_ *circle, _ context.Context, n int) (int, error) { return n, nil })
	circleArg  = mobula.RegisterMethod2(circles, "Arg", func(_ *circle, ctx context.Context, a, b circleRef) (int, error) {
		return circleTake.Go(ctx, b, circleEnd.Go(ctx, a)).Get(ctx)
	})
	circleByTask = mobula.RegisterMethod1(circles, "ByTask", func(_ *circle, ctx context.Context, a circleRef) (int, error) {
		return circleTask.Go(ctx, mobula.V(a)).Get(ctx)
	})
)

// circleTask is a task that waits for a call of an actor.
var circleTask = mobula.Register1("e2e/circle-task", func(ctx context.Context, a circleRef) (int, error) { return circleEnd.Go(ctx, a).Get(ctx) })

// An actor that waits for itself, also by way of another or of a task, is told so; one that waits for what can go on is not.
func TestAnActorThatWaitsForItselfIsTold(t *testing.T) { both(t, waitInCircles) }

// Also where its calls go by the owner.
func TestAnActorThatWaitsForItselfByTheOwnerIsTold(t *testing.T) {
	t.Setenv("MOBULA_STRAIGHT_CALLS", "0")
	waitInCircles(mobulatest.Context(t, mobula.WithCPUs(2)), t)
}

func waitInCircles(ctx context.Context, t *testing.T) {
	ctx, cancel := context.WithTimeout(ctx, testkit.Patience())
	defer cancel()
	spawn := func(opts ...mobula.ActorOption) circleRef {
		a, err := circles.Spawn(ctx, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a, b, wide := spawn(), spawn(), spawn(mobula.MaxConcurrency(2))
	if _, err := circleSelf.Go(ctx, a, mobula.V(a)).Get(ctx); !errors.Is(err, mobula.ErrDeadlock) {
		t.Errorf("a call that waits for its own actor: %v", err)
	}
	if _, err := circleVia.Go(ctx, a, mobula.V(a), mobula.V(b)).Get(ctx); !errors.Is(err, mobula.ErrDeadlock) {
		t.Errorf("by way of another actor: %v", err)
	}
	if _, err := circleByTask.Go(ctx, a, mobula.V(a)).Get(ctx); !errors.Is(err, mobula.ErrDeadlock) {
		t.Errorf("by way of a task: %v", err)
	}
	if _, err := circleArg.Go(ctx, a, mobula.V(a), mobula.V(b)).Get(ctx); !errors.Is(err, mobula.ErrDeadlock) {
		t.Errorf("by way of an argument: %v", err)
	}
	get(ctx, t, circleArg.Go(ctx, a, mobula.V(b), mobula.V(b)), 7)
	get(ctx, t, circleByTask.Go(ctx, a, mobula.V(b)), 7)
	get(ctx, t, circleSelf.Go(ctx, a, mobula.V(b)), 7)
	get(ctx, t, circleSelf.Go(ctx, wide, mobula.V(wide)), 7)             // there is another place
	get(ctx, t, circleVia.Go(ctx, wide, mobula.V(wide), mobula.V(a)), 7) // and here
	get(ctx, t, circleSoon.Go(ctx, a, mobula.V(a)), 1)                   // it gives up by itself
	get(ctx, t, circleEnd.Go(ctx, a), 7)
}
