package api

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// guard is an actor that makes another one again each time that it dies.
type guard struct {
	path  string
	child mobula.ActorRef[notes]
	seen  []string
	sub   *mobula.Subscription
	in    bool
}

func newGuard(ctx context.Context, path string) (*guard, error) {
	k := &guard{path: path}
	return k, k.hire(ctx)
}

func (k *guard) hire(ctx context.Context) (err error) {
	if k.child, err = noters.Spawn(ctx, mobula.V(k.path), mobula.Isolated()); err != nil {
		return err
	}
	k.sub, err = mobula.Notify(ctx, guardHear, k.child)
	return err
}

func (k *guard) Hear(ctx context.Context, ev mobula.ActorEvent) (mobula.Void, error) {
	if k.in {
		return mobula.Void{}, errors.New("two calls at once")
	}
	k.in = true
	defer func() { k.in = false }()
	if ev.Actor != k.child.ID() {
		return mobula.Void{}, fmt.Errorf("told of %s, watched %s", ev.Actor, k.child.ID())
	}
	if len(k.seen) == 0 || k.seen[len(k.seen)-1] != ev.Phase.String() {
		k.seen = append(k.seen, ev.Phase.String())
	}
	if ev.Phase != mobula.ActorDead {
		return mobula.Void{}, nil
	}
	if !errors.Is(ev.Err, mobula.ErrActorDied) {
		return mobula.Void{}, fmt.Errorf("it died of %w", ev.Err)
	}
	return mobula.Void{}, k.hire(ctx)
}

func (k *guard) Child(context.Context) (mobula.ActorRef[notes], error) { return k.child, nil }
func (k *guard) Quiet(context.Context) (mobula.Void, error) {
	k.sub.Stop()
	return mobula.Void{}, nil
}

func (k *guard) Seen(context.Context) (string, error) { return strings.Join(k.seen, " "), nil }

var (
	guards     = mobula.RegisterActor1("e2e/guard", newGuard)
	guardHear  mobula.Method1[guard, mobula.ActorEvent, mobula.Void]
	guardChild = mobula.RegisterMethod0(guards, "Child", (*guard).Child)
	guardQuiet = mobula.RegisterMethod0(guards, "Quiet", (*guard).Quiet)
	guardSeen  = mobula.RegisterMethod0(guards, "Seen", (*guard).Seen)
)

func init() { guardHear = mobula.RegisterMethod1(guards, "Hear", (*guard).Hear) }

func TestAnActorHearsOfAnothersDeathInItsTurn(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithCPUs(4), mobula.WithProcesses())
	path := filepath.Join(t.TempDir(), "n")
	k, err := guards.Spawn(ctx, mobula.V(path))
	if err != nil {
		t.Fatal(err)
	}
	says := func(ok func(string) bool) {
		t.Helper()
		var got string
		defer func() {
			if t.Failed() {
				t.Logf("it has heard %q", got)
			}
		}()
		testkit.Eventually(t, "heard", func() bool {
			if got, err = guardSeen.Go(ctx, k).Get(ctx); err != nil {
				t.Fatal(err)
			}
			return ok(got)
		})
	}
	for n := range 2 {
		says(func(got string) bool { return strings.Count(got, "alive") == n+1 && strings.HasSuffix(got, "alive") })
		child, err := guardChild.Go(ctx, k).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		noteCrash.Go(ctx, child)
		child.Release()
		says(func(got string) bool { return strings.Count(got, "dead") == n+1 })
	}
	says(func(got string) bool { return strings.HasSuffix(got, "alive") })
	get(ctx, t, guardQuiet.Go(ctx, k), mobula.Void{})
	child, err := guardChild.Go(ctx, k).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	for ev, err := range mobula.Watch(ctx, child) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Actor != child.ID() {
			t.Errorf("told of %s, watched %s", ev.Actor, child.ID())
		}
	}
	says(func(got string) bool { return strings.Count(got, "dead") == 2 })
	if _, err := mobula.Notify(ctx, guardHear, child); !errors.Is(err, mobula.ErrInvalid) {
		t.Errorf("outside an actor: %v", err)
	}
	child.Release()
	k.Release()
}
