package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

// The plan of faults takes its seed as the guide shows it: here the same one in every run, if none is set.
func init() {
	if os.Getenv(chaos.EnvSeed) == "" {
		os.Setenv(chaos.EnvSeed, cmp.Or(os.Getenv("MOBULA_TEST_SEED"), "1"))
	}
}

// quiet is for tests whose faults are wanted.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// audit compares all accounts with what they are to have.
func audit(t *testing.T, ctx context.Context, want ...int) {
	t.Helper()
	got, err := balances(ctx, len(want))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the accounts have %v, %v; want %v", got, err, want)
	}
}

// move makes one transfer, of 30 from the first account to the second.
func move(ctx context.Context) mobula.Ref[mobula.Void] {
	return Transfer.Go(ctx, mobula.V("t1"), mobula.V(name(0)), mobula.V(name(1)), mobula.V(30))
}

func TestTheAccountDiesBeforeItAnswers(t *testing.T) {
	plan := chaos.New(1, chaos.Rule{
		At:  chaos.After("bank/account.Book"), // it has booked, and nobody knows
		Nth: 3,                                // the first two are the opening
		Do:  chaos.Crash(),
	})
	c := mobulatest.Start(t, mobulatest.WithFaults(plan), mobula.WithProcesses(), mobula.WithLogger(quiet))
	ctx := c.Context(t.Context())
	if err := found(ctx, t.TempDir(), 2, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := move(ctx).Get(ctx); err != nil {
		t.Fatal(err)
	}
	audit(t, ctx, 70, 130)
	if n := len(plan.Hits()); n != 1 {
		t.Errorf("%d faults", n)
	}
}

func TestTheSumIsNowhereForAWhile(t *testing.T) {
	plan := chaos.New(1)
	c := mobulatest.Start(t, mobulatest.WithFaults(plan), mobula.WithProcesses())
	ctx := c.Context(t.Context())
	if err := found(ctx, t.TempDir(), 2, 100); err != nil {
		t.Fatal(err)
	}
	plan.Hold("bank/between")
	done := move(ctx)
	if err := plan.Reached(ctx, "bank/between", 1); err != nil { // no sleep: it is there when this returns
		t.Fatal(err)
	}
	audit(t, ctx, 70, 100)
	plan.Release("bank/between")
	if _, err := done.Get(ctx); err != nil {
		t.Fatal(err)
	}
	audit(t, ctx, 70, 130)
}

func TestTheBankUnderFaults(t *testing.T) {
	const accounts, opening = 4, 100
	plan := chaos.New(chaos.Seed(),
		chaos.Rule{At: chaos.Place("bank/written"), Chance: 0.05, Times: 3, Do: chaos.Crash()},
		chaos.Rule{At: chaos.Place("bank/between"), Nth: 20, Do: chaos.KillNode()},
		chaos.Rule{At: chaos.Message("Done"), Nth: 70, Do: chaos.Drop()},
		chaos.Rule{At: chaos.Message("Exec"), Chance: 0.1, Do: chaos.DelayUpTo(5 * time.Millisecond)},
		chaos.Rule{At: chaos.Component("owner", ""), Nth: 50, Do: chaos.Crash()},
	)
	node := mobulatest.StartNode(t, mobulatest.NodeConfig{CPUs: 2, Faults: plan})
	c := node.Connect(mobula.ConnectLogger(quiet))
	ctx := c.Context(t.Context())
	if err := found(ctx, t.TempDir(), accounts, opening); err != nil {
		t.Fatal(err)
	}
	mobulatest.Invariant(t, c, func(ctx context.Context) error {
		got, err := balances(ctx, accounts)
		for i, b := range got {
			if b < 0 {
				return fmt.Errorf("%s has %d", name(i), b)
			}
		}
		return err
	})
	if err := trade(ctx, accounts, 60); err != nil {
		t.Fatal(err)
	}
	plan.Quiet()
	got, err := balances(ctx, accounts)
	sum := 0
	for _, b := range got {
		sum += b
	}
	if plan.Count("bank/between") < 20 {
		t.Error("the node was not killed")
	}
	if err != nil || sum != accounts*opening {
		t.Errorf("the accounts have %v, which is %d, %v", got, sum, err)
	}
}

// What the guide shows is in this package, to the letter.
func TestTheGuideIsTrue(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/testing-faults.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	for _, b := range blocks {
		if !strings.Contains(code.String(), b[1]) {
			t.Errorf("no code of this package:\n%s", b[1])
		}
	}
	if len(blocks) < 4 {
		t.Errorf("%d pieces of code", len(blocks))
	}
}
