package mobulatest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/testkit"
)

// quiet is for tests whose faults are wanted.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// load runs tasks, nested references, actor calls, streams of puts and large values, and checks every answer.
func load(ctx context.Context, n int) error {
	b, err := tallyType.Spawn(ctx)
	if err != nil {
		return err
	}
	var sums []mobula.Ref[float64]
	var tallies []mobula.Ref[int]
	for i := range n {
		put, err := mobula.Put(ctx, values(float64(i)))
		if err != nil {
			return err
		}
		sums = append(sums, sum.Go(ctx, put), sum.Go(ctx, large.Go(ctx, mobula.V(float64(i)))))
		small, err := mobula.Put(ctx, i)
		if err != nil {
			return err
		}
		tallies = append(tallies, tallyAdd.Go(ctx, b, add.Go(ctx, small, mobula.V(1))))
	}
	for i, r := range sums {
		if got, err := r.Get(ctx); err != nil || got != float64(i/2)*128*1024 {
			return fmt.Errorf("sum %d: %v, %w", i, got, err)
		}
	}
	for i, r := range tallies {
		got, err := r.Get(ctx)
		if err != nil && !errors.Is(err, mobula.ErrActorUnavailable) || err == nil && got < 1 {
			return fmt.Errorf("call %d: %v, %w", i, got, err)
		}
	}
	return nil
}

type tally struct{ n int }

var (
	tallyType = mobula.RegisterActor0("mobulatest/tally", func(context.Context) (*tally, error) { return &tally{}, nil }, mobula.MaxRestarts(-1))
	tallyAdd  = mobula.RegisterMethod1(tallyType, "Add", (*tally).Add)
)

func (t *tally) Add(_ context.Context, by int) (int, error) { t.n += by; return t.n, nil }

// limit bounds a test that waits often.
func limit(t *testing.T, ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, 3*testkit.Patience())
	t.Cleanup(cancel)
	return ctx
}

// Every second message of each kind that may come twice does so.
func TestMessagesComeTwice(t *testing.T) {
	for _, processes := range []bool{false, true} {
		for _, kind := range []string{"Submit", "PutValue", "Seal", "Get", "Done", "Resolved"} {
			t.Run(fmt.Sprintf("%s processes=%v", kind, processes), func(t *testing.T) {
				plan := chaos.New(1, chaos.Rule{At: chaos.Message(kind), Chance: .5, Do: chaos.Duplicate()})
				opts := []mobula.StartOption{WithFaults(plan), mobula.WithLogger(quiet())}
				if processes {
					opts = append(opts, mobula.WithProcesses())
				}
				ctx := limit(t, Context(t, opts...))
				if err := load(ctx, 10); err != nil {
					t.Error(err)
				}
				if len(plan.Hits()) == 0 {
					t.Error("none came twice")
				}
			})
		}
	}
}

func TestMessagesAreLate(t *testing.T) {
	var rules []chaos.Rule
	for _, kind := range []string{"Submit", "Done", "Resolved", "Exec", "Create", "Created", "Seal", "Release", "Get"} {
		rules = append(rules, chaos.Rule{At: chaos.Message(kind), Chance: .3, Do: chaos.DelayUpTo(3 * time.Millisecond)})
	}
	for _, processes := range []bool{false, true} {
		t.Run(fmt.Sprintf("processes=%v", processes), func(t *testing.T) {
			plan := chaos.New(1, rules...)
			opts := []mobula.StartOption{WithFaults(plan), mobula.WithLogger(quiet())}
			if processes {
				opts = append(opts, mobula.WithProcesses())
			}
			ctx := limit(t, Context(t, opts...))
			if err := load(ctx, 10); err != nil {
				t.Error(err)
			}
			late := make(map[int]bool)
			for _, h := range plan.Hits() {
				late[h.Rule] = true
			}
			if len(late) < len(rules)/2 { // some kinds are few, and may have no luck
				t.Errorf("of %d kinds %d were late", len(rules), len(late))
			}
		})
	}
}

// A lost message of a worker ends its connection and the worker: its tasks run again.
func TestAWorkersMessageIsDropped(t *testing.T) {
	for _, kind := range []string{"Done", "Exec", "Create", "Created"} {
		t.Run(kind, func(t *testing.T) {
			plan := chaos.New(1, chaos.Rule{At: chaos.Message(kind), Nth: 2, Do: chaos.Drop()})
			ctx := limit(t, Context(t, WithFaults(plan), mobula.WithProcesses(), mobula.WithLogger(quiet())))
			if err := load(ctx, 10); err != nil {
				t.Error(err)
			}
			happened(t, plan, "2: drop at message "+kind)
		})
	}
}

// A lost message of a driver, in either direction, ends its job with the reason; the next driver works.
func TestADriversMessageIsDropped(t *testing.T) {
	for _, kind := range []string{"PutValue", "Submit", "Resolved"} {
		t.Run(kind, func(t *testing.T) {
			plan := chaos.New(1, chaos.Rule{At: chaos.Message(kind), Nth: 2, Do: chaos.Drop()})
			n := StartNode(t, NodeConfig{Faults: plan, CPUs: 2})
			ctx := limit(t, n.Connect(mobula.ConnectLogger(quiet())).Context(t.Context()))
			var err error
			// A value that comes before it is asked for needs no Resolved, and more than one in three may.
			for i := 0; i < 1000 && err == nil; i++ {
				var r mobula.Ref[int]
				if r, err = mobula.Put(ctx, i); err == nil {
					_, err = add.Go(ctx, r, mobula.V(1)).Get(ctx)
				}
			}
			if !errors.Is(err, mobula.ErrOwnerDied) || !strings.Contains(err.Error(), kind+" was dropped") {
				t.Errorf("the job whose message was lost: %v", err)
			}
			if err := load(limit(t, n.Connect(mobula.ConnectLogger(quiet())).Context(t.Context())), 5); err != nil {
				t.Errorf("the next driver: %v", err)
			}
		})
	}
}

// A plan comes from the node, not from a driver's environment.
func TestNoEnvironmentMakesFaults(t *testing.T) {
	t.Setenv("MOBULA_WORKER_CHAOS", "/nowhere") // a worker that is told so does not start
	ctx := limit(t, Context(t, mobula.WithProcesses()))
	if got, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err != nil || got != 3 {
		t.Errorf("got %d, %v", got, err)
	}
}

// The end of the test does not wait for delays, however long.
func TestNobodyWaitsForWhatIsLate(t *testing.T) {
	for _, at := range []chaos.Target{chaos.Message("Submit"), chaos.Message("Resolved"), chaos.Message("Done"), chaos.Before("mobulatest/add")} {
		for _, processes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v processes=%v", at, processes), func(t *testing.T) {
				opts := []mobula.StartOption{WithFaults(chaos.New(1, chaos.Rule{At: at, Do: chaos.Delay(time.Hour)})), mobula.WithLogger(quiet())}
				if processes {
					opts = append(opts, mobula.WithProcesses())
				}
				c := Start(t, opts...)
				ctx, cancel := context.WithTimeout(c.Context(t.Context()), 50*time.Millisecond)
				defer cancel()
				if got, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err == nil {
					t.Errorf("got %d, an hour too early", got)
				}
			})
		}
	}
}
