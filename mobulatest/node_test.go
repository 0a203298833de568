package mobulatest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/testkit"
)

// The node is killed at a place in a worker, and again while a driver waits: the driver goes on.
func TestTheNodeIsKilled(t *testing.T) {
	plan := chaos.New(1,
		chaos.Rule{At: chaos.Place("edge"), Do: chaos.KillNode()},
		chaos.Rule{At: chaos.Message("Done"), Nth: 12, Do: chaos.KillNode()})
	n := StartNode(t, NodeConfig{Faults: plan, CPUs: 2})
	c := n.Connect(mobula.ConnectLogger(quiet()))
	ctx := limit(t, c.Context(t.Context()))
	if _, err := meet.Go(ctx, mobula.V("edge")).Get(ctx); err != nil {
		t.Error(err)
	}
	if plan.Count("edge") != 2 { // it ran again
		t.Errorf("reached %d times", plan.Count("edge"))
	}
	if err := load(ctx, 10); err != nil {
		t.Error(err)
	}
	happened(t, plan, "1: kill the node at place edge", "12: kill the node at message Done")
}

func TestTheNodeFreezes(t *testing.T) {
	plan := chaos.New(1,
		chaos.Rule{At: chaos.Place("edge"), Do: chaos.FreezeNode(0)},
		chaos.Rule{At: chaos.Message("Submit"), Nth: 5, Do: chaos.FreezeNode(20 * time.Millisecond)})
	n := StartNode(t, NodeConfig{Faults: plan, CPUs: 2})
	ctx := limit(t, n.Connect(mobula.ConnectLogger(quiet())).Context(t.Context()))
	r := meet.Go(ctx, mobula.V("edge"))
	if err := plan.Reached(ctx, "edge", 1); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "frozen", n.isFrozen)
	plan.Thaw()
	if _, err := r.Get(ctx); err != nil {
		t.Error(err)
	}
	if err := load(ctx, 5); err != nil {
		t.Error(err)
	}
}

func (n *Node) isFrozen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.frozen
}

// A test kills, freezes and stops a node itself.
func TestANodeByHand(t *testing.T) {
	n := StartNode(t, NodeConfig{CPUs: 1})
	ctx := limit(t, n.Connect(mobula.ConnectLogger(quiet())).Context(t.Context()))
	for what, f := range map[string]func() error{"restart": n.Restart, "freeze": n.Freeze, "thaw": n.Thaw} {
		if err := f(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if what == "freeze" {
			if err := n.Thaw(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err != nil || got != 3 {
			t.Errorf("after %s: %d, %v", what, got, err)
		}
	}
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	r := add.Go(ctx, mobula.V(1), mobula.V(2))
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(ctx); err != nil || got != 3 {
		t.Errorf("got %d, %v", got, err)
	}
}

// menu has the rules that random plans are made of.
func menu(node bool) []chaos.Rule {
	out := []chaos.Rule{
		{At: chaos.Message("Done"), Do: chaos.Drop()}, {At: chaos.Message("Exec"), Do: chaos.Drop()}, {At: chaos.Message("Done"), Do: chaos.Duplicate()},
		{At: chaos.Message("Submit"), Do: chaos.Duplicate()}, {At: chaos.Message("Seal"), Do: chaos.Duplicate()},
		{At: chaos.Message("PutValue"), Do: chaos.Duplicate()}, {At: chaos.Message("Resolved"), Do: chaos.DelayUpTo(5 * time.Millisecond)},
		{At: chaos.Message("Release"), Do: chaos.DelayUpTo(5 * time.Millisecond)}, {At: chaos.Message("Done"), Do: chaos.Freeze(10 * time.Millisecond)},
		{At: chaos.Message("Exec"), Do: chaos.DelayUpTo(10 * time.Millisecond)}, {At: chaos.Message("Created"), Do: chaos.DelayUpTo(5 * time.Millisecond)},
		{At: chaos.Before("mobulatest/sum"), Do: chaos.Crash()}, {At: chaos.After("mobulatest/large"), Do: chaos.Crash()},
		{At: chaos.After("mobulatest/tally.Add"), Do: chaos.Crash()}, {At: chaos.Before("mobulatest/add"), Do: chaos.DelayUpTo(10 * time.Millisecond)},
		{At: chaos.Component("owner", ""), Do: chaos.Crash()}, {At: chaos.Component("scheduler", ""), Do: chaos.Crash()},
		{At: chaos.Component("objectstore", ""), Do: chaos.Crash()}, {At: chaos.Component("spiller", ""), Do: chaos.Crash()},
		{At: chaos.Component("", ""), Do: chaos.DelayUpTo(time.Millisecond)}, {At: chaos.Spill(), Do: chaos.Fail(nil)},
	}
	if node {
		out = append(out, chaos.Rule{At: chaos.Message("Done"), Do: chaos.KillNode()}, chaos.Rule{At: chaos.Message("Submit"), Do: chaos.FreezeNode(10 * time.Millisecond)})
	}
	return out
}

// anyPlan draws four rules and when they hit. No task is hit oftener than it is retried, and no component crashes twice on one message,
// which it would drop.
func anyPlan(seed uint64, node bool) *chaos.Plan {
	rng := rand.New(rand.NewPCG(seed, 0))
	rules := menu(node)
	var out []chaos.Rule
	for len(out) < 4 {
		r := rules[rng.IntN(len(rules))]
		r.Nth = 1 + rng.IntN(12)
		if !slices.ContainsFunc(out, func(o chaos.Rule) bool {
			return o.At == r.At && o.Do == r.Do && max(o.Nth, r.Nth)-min(o.Nth, r.Nth) <= 1
		}) {
			out = append(out, r)
		}
	}
	return chaos.New(seed, out...)
}

// A component that crashes twice on one message goes on without it: what the message was to make fails by name, and nothing waits for ever.
func TestTwoCrashesOnOneMessage(t *testing.T) {
	for _, kind := range []string{"owner", "scheduler", "objectstore"} {
		for nth := 1; nth <= 2*seeds(); nth++ {
			t.Run(fmt.Sprintf("%s %d", kind, nth), func(t *testing.T) {
				crash := func(nth int) chaos.Rule {
					return chaos.Rule{At: chaos.Component(kind, ""), Nth: nth, Do: chaos.Crash()}
				}
				plan := chaos.New(1, crash(nth), crash(nth+1))
				ctx := limit(t, Context(t, WithFaults(plan), mobula.WithProcesses(), mobula.WithStore(12<<20), mobula.WithCPUs(2), mobula.WithLogger(quiet())))
				if err := load(ctx, 12); err != nil && !errors.Is(err, mobula.ErrComponentFailed) {
					t.Error(err)
				}
			})
		}
	}
}

// Whatever the plan, work ends, with the right answers.
func TestAnyPlan(t *testing.T) {
	for _, seed := range testkit.Seeds(t, seeds()) {
		t.Run(fmt.Sprintf("processes %d", seed), func(t *testing.T) {
			ctx := limit(t, Context(t, WithFaults(anyPlan(seed, false)), mobula.WithProcesses(), mobula.WithStore(12<<20), mobula.WithCPUs(2), mobula.WithLogger(quiet())))
			if err := load(ctx, 12); err != nil {
				t.Error(err)
			}
		})
		t.Run(fmt.Sprintf("node %d", seed), func(t *testing.T) {
			n := StartNode(t, NodeConfig{Faults: anyPlan(seed, true), CPUs: 2, Store: 12 << 20})
			ctx := limit(t, n.Connect(mobula.ConnectLogger(quiet())).Context(t.Context()))
			if err := load(ctx, 12); err != nil {
				t.Error(err)
			}
		})
	}
}

// seeds is how many plans are drawn; `make stress` draws more.
func seeds() int {
	if os.Getenv("MOBULA_STRESS") != "" {
		return 100
	}
	return 3
}
