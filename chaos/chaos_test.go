package chaos_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/chaos"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheSeedComesFromTheEnvironment(t *testing.T) {
	t.Setenv(chaos.EnvSeed, "42")
	if got := chaos.Seed(); got != 42 {
		t.Errorf("seed %d", got)
	}
	t.Setenv(chaos.EnvSeed, "")
	if one, two := chaos.Seed(), chaos.Seed(); one == two {
		t.Error("two runs have one seed")
	}
	t.Setenv(chaos.EnvSeed, "many")
	defer func() {
		if recover() == nil {
			t.Error("a replay of no seed")
		}
	}()
	chaos.Seed()
}

// hits reaches two places a hundred times each.
func hits(t *testing.T, seed uint64) []chaos.Hit {
	t.Helper()
	plan := chaos.New(seed,
		chaos.Rule{At: chaos.Place("a"), Chance: .2, Do: chaos.DelayUpTo(time.Microsecond)},
		chaos.Rule{At: chaos.Place("b"), Chance: .2, Do: chaos.Fail(nil)})
	if _, err := plan.Faults().Open(); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 100 {
		chaos.Point(t.Context(), "a")
		if chaos.Check(t.Context(), "b") != nil {
			failed++
		}
	}
	if failed == 0 || plan.Count("a") != 100 {
		t.Errorf("failed %d times, reached %d times", failed, plan.Count("a"))
	}
	if err := plan.Faults().Close(); err != nil {
		t.Error(err)
	}
	return plan.Hits()
}

func TestTheSameSeedDecidesTheSame(t *testing.T) {
	if a, b := hits(t, 1), hits(t, 1); !slices.Equal(a, b) {
		t.Errorf("first %v, then %v", a, b)
	}
	if slices.Equal(hits(t, 1), hits(t, 2)) {
		t.Error("two seeds decide the same")
	}
}

func TestAPointIsFreeWhenOff(t *testing.T) {
	ctx := context.Background()
	if n := testing.AllocsPerRun(100, func() { chaos.Point(ctx, "a") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkPointOff(b *testing.B) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		chaos.Point(ctx, "a")
	}
}
