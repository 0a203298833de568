package restarts

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

// ticker is an actor of which it does not matter that it forgets.
type ticker struct{ n int }

var (
	tickerType = mobula.RegisterActor0("e2e/ticker", func(context.Context) (*ticker, error) { return &ticker{}, nil }, mobula.MaxRestarts(0), mobula.MaxTaskRetries(0))
	tickerPing = mobula.RegisterMethod0(tickerType, "Ping", (*ticker).Ping)
	tickerWait = mobula.RegisterMethod1(tickerType, "Wait", (*ticker).Wait)
)

func (k *ticker) Ping(context.Context) (int, error) {
	k.n++
	return k.n, nil
}

func (k *ticker) Wait(ctx context.Context, ms int) (int, error) {
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
	}
	return k.Ping(ctx)
}

func init() {
	harness.DriverBodies["ticker"] = func(ctx context.Context) error {
		a, err := tickerType.Spawn(ctx, mobula.Named("e2e", "ticker"), mobula.Detached(), mobula.MaxRestarts(-1))
		if err != nil {
			return err
		}
		_, err = tickerPing.Go(ctx, a).Get(ctx)
		return err
	}
	harness.DriverBodies["ticker-once"] = func(ctx context.Context) error {
		a, err := tickerType.Spawn(ctx, mobula.Named("e2e", "ticker"), mobula.Detached())
		if err != nil {
			return err
		}
		_, err = tickerPing.Go(ctx, a).Get(ctx)
		return err
	}
}

// goesOn calls until a call succeeds; an error but that the actor restarts is one too many.
func goesOn(t *testing.T, ctx context.Context, a mobula.ActorRef[ticker]) int {
	t.Helper()
	for {
		n, err := tickerPing.Go(ctx, a).Get(ctx)
		if err == nil {
			return n
		}
		if !errors.Is(err, mobula.ErrActorUnavailable) || ctx.Err() != nil {
			t.Fatalf("a call: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A job that calls another job's actor goes on when the node is killed, whether the actor's job has a driver or not, and
// whichever of the two is older.
func TestCallerOfAnotherJobsActorOutlivesTheNode(t *testing.T) {
	for _, older := range []bool{false, true} {
		for _, left := range []bool{false, true} {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}
			p := harness.MustLaunch(t, cfg)
			join := func() { _, ctx = harness.Connect(t, ctx, p) }
			if older {
				join()
			}
			d := harness.LaunchDriver(t, p.Address, "ticker")
			if !older {
				join()
			}
			if left {
				d.Stop(t)
			}
			a, err := mobula.GetActor[ticker](ctx, "e2e", "ticker")
			if err != nil {
				t.Fatal(err)
			}
			goesOn(t, ctx, a)
			for range 2 {
				slow := tickerWait.Go(ctx, a, mobula.V(60_000)) // it must not run twice, and is not to hang
				harness.Eventually(t, ctx, "the call runs", func() bool { return len(harness.WorkersOf(p.Address)) > 0 })
				p.Kill(t)
				p = harness.MustLaunch(t, cfg)
				if n := goesOn(t, ctx, a); n < 1 {
					t.Errorf("it counts %d", n)
				}
				if _, err := slow.Get(ctx); !errors.Is(err, mobula.ErrActorUnavailable) {
					t.Errorf("the call that was under way: %v", err)
				}
			}
			if older || left {
				continue
			}
			d.Stop(t)
		}
	}
}

// A detached actor is there again after the node was stopped in order, under its name, even one that never restarts.
func TestDetachedActorOutlivesAStoppedNode(t *testing.T) {
	for _, body := range []string{"ticker", "ticker-once"} {
		for _, left := range []bool{true, false} {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}
			p := harness.MustLaunch(t, cfg)
			d := harness.LaunchDriver(t, p.Address, body)
			if left {
				d.Stop(t)
			}
			for range 2 {
				p.Stop(t)
				began := time.Now()
				p = harness.MustLaunch(t, cfg)
				c, err := mobula.Connect(ctx, p.Address, mobula.ConnectLogger(harness.Quiet()))
				if err != nil {
					t.Fatal(err)
				}
				ctx := c.Context(ctx)
				a, err := mobula.GetActor[ticker](ctx, "e2e", "ticker")
				if err != nil {
					t.Fatal(err)
				}
				goesOn(t, ctx, a)
				if took := time.Since(began); took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				if _, err := tickerType.Spawn(ctx, mobula.Named("e2e", "ticker")); !errors.Is(err, mobula.ErrNameTaken) {
					t.Errorf("a second one of its name: %v", err)
				}
				b, err := tickerType.Spawn(ctx, mobula.Named("e2e", "ticker"), mobula.GetIfExists())
				if err != nil {
					t.Fatal(err)
				}
				goesOn(t, ctx, b)
				rows, err := c.ListActors(ctx, mobula.Query{})
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range rows.Rows {
					if r.Name == "ticker" && r.Restarts != 0 {
						t.Errorf("the stop is charged: %+v", r)
					}
				}
				if err := c.Close(ctx); err != nil {
					t.Error(err)
				}
			}
			_, ctx = harness.Connect(t, ctx, p)
			a, err := mobula.GetActor[ticker](ctx, "e2e", "ticker")
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Kill(ctx); err != nil {
				t.Fatal(err)
			}
			nameFree(t, ctx)
			if !left {
				d.Leave() // its node was stopped under it
			}
		}
	}
}

func nameFree(t *testing.T, ctx context.Context) {
	t.Helper()
	harness.Eventually(t, ctx, "the name is free", func() bool {
		_, err := mobula.GetActor[ticker](ctx, "e2e", "ticker")
		return errors.Is(err, mobula.ErrNotFound)
	})
}

// An actor that dies as the node is killed does not keep its name, whichever of the two was written down first.
func TestNameOfADeadActorIsFreeAfterAKill(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	for i := range harness.Size(6, 60) {
		c, err := mobula.Connect(ctx, p.Address, mobula.ConnectLogger(harness.Quiet()))
		if err != nil {
			t.Fatal(err)
		}
		cctx := c.Context(ctx)
		a, err := tickerType.Spawn(cctx, mobula.Named("e2e", "ticker"), mobula.Detached())
		if err == nil {
			_, err = tickerPing.Go(cctx, a).Get(cctx)
		}
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		var dead atomic.Bool
		ref := tickerWait.Go(cctx, a, mobula.V(60_000))
		go func() {
			_, err := ref.Get(cctx)
			dead.Store(errors.Is(err, mobula.ErrActorDied))
		}()
		if err := a.Kill(cctx); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(testkit.Patience()); !dead.Load() && time.Now().Before(end); {
			time.Sleep(20 * time.Microsecond)
		}
		p.Kill(t)
		p = harness.MustLaunch(t, cfg)
		nameFree(t, cctx)
		if err := c.Close(cctx); err != nil {
			t.Fatal(err)
		}
	}
}
