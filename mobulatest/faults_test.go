package mobulatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/chaos"
	"mobula/internal/testkit"
)

var errInjected = errors.New("no luck")

// book appends a line to a file for each call: what was done is seen, whatever its caller was told.
type book struct{ path string }

var (
	bookType  = mobula.RegisterActor1("mobulatest/book", func(_ context.Context, path string) (*book, error) { return &book{path}, nil }, mobula.MaxRestarts(-1))
	bookWrite = mobula.RegisterMethod1(bookType, "Write", (*book).Write)
	meet      = mobula.Register1("mobulatest/meet", func(ctx context.Context, where string) (int, error) {
		chaos.Point(ctx, where)
		return os.Getpid(), chaos.Check(ctx, where+"/check")
	})
	large = mobula.Register1("mobulatest/large", func(_ context.Context, v float64) ([]float64, error) { return values(v), nil })
	sum   = mobula.Register1("mobulatest/sum", func(_ context.Context, vs []float64) (float64, error) { return total(vs), nil })
)

func (b *book) Write(_ context.Context, line string) (int, error) {
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	return os.Getpid(), err
}

// values are 1 MiB that add up to 128 Ki times v.
func values(v float64) []float64 {
	out := make([]float64, 128<<10)
	for i := range out {
		out[i] = v
	}
	return out
}

func total(vs []float64) (t float64) {
	for _, v := range vs {
		t += v
	}
	return t
}

// happened checks what a plan did.
func happened(t *testing.T, plan *chaos.Plan, want ...string) {
	t.Helper()
	var got []string
	for _, h := range plan.Hits() {
		got = append(got, fmt.Sprintf("%d: %s", h.Occurrence, h.What))
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("went wrong: %q, want %q", got, want)
	}
}

func TestCrashBeforeTheSecondCall(t *testing.T) {
	plan := chaos.New(1, chaos.Rule{At: chaos.Before("mobulatest/pid"), Nth: 2, Do: chaos.Crash()})
	c := Start(t, mobula.WithProcesses(), WithFaults(plan))
	ctx := c.Context(t.Context())
	first, err := pid.Go(ctx).Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := pid.Go(ctx).Get(ctx); err != nil || second == first { // a retry, in another process
		t.Errorf("ran in %d after %d, %v", second, first, err)
	}
	happened(t, plan, "2: crash at before mobulatest/pid")
}

// A crash after a call leaves what it did: with a retry it is done twice, and the caller is told once.
func TestCrashAfterTheSecondCallOfAMethod(t *testing.T) {
	path := t.TempDir() + "/book"
	plan := chaos.New(1, chaos.Rule{At: chaos.After("mobulatest/book.Write"), Nth: 2, Do: chaos.Crash()})
	c := Start(t, mobula.WithProcesses(), WithFaults(plan))
	ctx := c.Context(t.Context())
	b, err := bookType.Spawn(ctx, mobula.V(path), mobula.MaxTaskRetries(-1))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"a", "b", "c"} {
		if _, err := bookWrite.Go(ctx, b, mobula.V(line)).Get(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "a\nb\nb\nc\n" {
		t.Errorf("the book says %q, %v", text, err)
	}
	happened(t, plan, "2: crash at after mobulatest/book.Write")
}

func TestCallsFail(t *testing.T) {
	path := t.TempDir() + "/book"
	plan := chaos.New(1,
		chaos.Rule{At: chaos.Before("mobulatest/book.Write"), Do: chaos.Fail(errInjected)},
		chaos.Rule{At: chaos.After("mobulatest/book.Write"), Do: chaos.Fail(nil)},
		chaos.Rule{At: chaos.Place("here/check"), Do: chaos.Fail(errInjected)})
	c := Start(t, WithFaults(plan))
	ctx := c.Context(t.Context())
	b, err := bookType.Spawn(ctx, mobula.V(path))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"no luck", "chaos: injected failure at after mobulatest/book.Write", ""} {
		_, err := bookWrite.Go(ctx, b, mobula.V(fmt.Sprint(i))).Get(ctx)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("call %d: %v, want %q", i, err, want)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "1\n2\n" {
		t.Errorf("the book says %q, %v", text, err)
	}
	if _, err := meet.Go(ctx, mobula.V("here")).Get(ctx); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a check that is to fail: %v", err)
	}
}

func TestACallIsLate(t *testing.T) {
	plan := chaos.New(1, chaos.Rule{At: chaos.Before("mobulatest/add"), Do: chaos.Delay(50 * time.Millisecond)})
	ctx := Context(t, WithFaults(plan))
	since := time.Now()
	if got, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err != nil || got != 3 || time.Since(since) < 50*time.Millisecond {
		t.Errorf("got %d, %v after %v", got, err, time.Since(since))
	}
}

// A test waits for a place in a worker, and for nothing else.
func TestSyncPoints(t *testing.T) {
	for _, opts := range [][]mobula.StartOption{{mobula.WithCPUs(1)}, {mobula.WithCPUs(1), mobula.WithProcesses()}} {
		t.Run(fmt.Sprintf("%d options", len(opts)), func(t *testing.T) {
			plan := chaos.New(1)
			ctx := Context(t, append(opts, WithFaults(plan))...)
			plan.Hold("corner")
			first, second := meet.Go(ctx, mobula.V("corner")), pid.Go(ctx)
			if err := plan.Reached(ctx, "corner", 1); err != nil {
				t.Fatal(err)
			}
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if v, err := first.Get(short); !errors.Is(err, mobula.ErrGetTimeout) {
				t.Errorf("got %d, %v from a task that is held", v, err)
			}
			plan.Release("corner")
			for _, r := range []mobula.Ref[int]{first, second} {
				if _, err := r.Get(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestAWorkerFreezes(t *testing.T) {
	plan := chaos.New(1,
		chaos.Rule{At: chaos.Place("cold"), Do: chaos.Freeze(0)},
		chaos.Rule{At: chaos.Message("Done"), Nth: 2, Do: chaos.Freeze(20 * time.Millisecond)})
	c := Start(t, mobula.WithProcesses(), WithFaults(plan))
	ctx := c.Context(t.Context())
	for range 3 {
		r := meet.Go(ctx, mobula.V("cold"))
		if err := plan.Reached(ctx, "cold", 1); err != nil {
			t.Fatal(err)
		}
		plan.Thaw()
		if _, err := r.Get(ctx); err != nil {
			t.Error(err)
		}
	}
	happened(t, plan, "1: freeze at place cold", "2: freeze at message Done")
}

func TestComponentsCrash(t *testing.T) {
	var rules []chaos.Rule
	for _, kind := range []string{"owner", "scheduler", "objectstore"} {
		rules = append(rules, chaos.Rule{At: chaos.Component(kind, ""), Nth: 5, Do: chaos.Crash()})
	}
	rules = append(rules, chaos.Rule{At: chaos.Component("owner", "FromClient"), Nth: 8, Do: chaos.Delay(time.Millisecond)})
	plan := chaos.New(1, rules...)
	ctx := Context(t, WithFaults(plan))
	for i := range 20 {
		if got, err := sum.Go(ctx, large.Go(ctx, mobula.V(float64(i)))).Get(ctx); err != nil || got != float64(i)*128*1024 {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if n := len(plan.Hits()); n != len(rules) {
		t.Errorf("%d of %d faults", n, len(rules))
	}
}

func TestSpillsFail(t *testing.T) {
	plan := chaos.New(1, chaos.Rule{At: chaos.Spill(), Times: 3, Do: chaos.Fail(nil)})
	ctx := Context(t, mobula.WithStore(8<<20), WithFaults(plan))
	var refs []mobula.Ref[[]float64]
	for i := range 24 { // three times the store
		r, err := mobula.Put(ctx, values(float64(i)))
		if err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r)
	}
	for i, r := range refs {
		if vs, err := r.Get(ctx); err != nil || total(vs) != float64(i)*128*1024 {
			t.Errorf("object %d: %v", i, err)
		}
	}
	if n := len(plan.Hits()); n != 3 {
		t.Errorf("%d spills failed", n)
	}
}

func TestACreateFails(t *testing.T) {
	plan := chaos.New(1, chaos.Rule{At: chaos.Create(), Nth: 2, Do: chaos.Fail(nil)}, chaos.Rule{At: chaos.Create(), Nth: 4, Do: chaos.Fail(errInjected)})
	ctx := Context(t, WithFaults(plan))
	for i, want := range []error{nil, mobula.ErrStoreFull, nil} {
		if _, err := mobula.Put(ctx, values(1)); !errors.Is(err, want) {
			t.Errorf("put %d: %v, want %v", i, err, want)
		}
	}
	if _, err := large.Go(ctx, mobula.V(1.0)).Get(ctx); err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a result for which there is no room: %v", err)
	}
}

// A fault that needs a process is refused if there is none.
func TestFaultsThatCannotBe(t *testing.T) {
	for _, r := range []chaos.Rule{
		{At: chaos.Before("mobulatest/add"), Do: chaos.Crash()},
		{At: chaos.Message("Done"), Do: chaos.Drop()},
		{At: chaos.Place("x"), Do: chaos.KillNode()},
		{At: chaos.Message("Release"), Do: chaos.Duplicate()},
	} {
		c, err := mobula.Start(t.Context(), mobula.WithDir(tempDir(t)), WithFaults(chaos.New(1, r)))
		if !errors.Is(err, mobula.ErrInvalid) {
			t.Errorf("%v: %v", r.At, err)
		}
		if c != nil {
			_ = c.Close(t.Context())
		}
	}
}

// innerEnv has the tests below run, which are to fail.
const innerEnv = "MOBULA_TEST_INNER"

// fails runs a test that is to fail in a process of its own, and gives what it says.
func fails(t *testing.T, name string, env ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), innerEnv+"=1"), env...)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s has passed:\n%s", name, out)
	}
	return string(out)
}

func TestInnerSeed(t *testing.T) {
	if os.Getenv(innerEnv) == "" {
		return
	}
	plan := chaos.New(chaos.Seed(), chaos.Rule{At: chaos.Before("mobulatest/add"), Chance: .5, Do: chaos.Fail(errInjected)})
	ctx := Context(t, WithFaults(plan))
	for range 20 {
		if _, err := add.Go(ctx, mobula.V(1), mobula.V(2)).Get(ctx); err != nil {
			t.Error("failed")
		}
	}
}

// A failing test logs its seed, and with that seed fails again in the same way.
func TestTheSeedReplays(t *testing.T) {
	var faults []string
	seed := strconv.FormatUint(testkit.Seed(t), 10)
	for range 2 {
		out := fails(t, "TestInnerSeed", chaos.EnvSeed+"="+seed)
		_, rest, ok := strings.Cut(out, chaos.EnvSeed+"=")
		if !ok {
			t.Fatalf("there is no seed in:\n%s", out)
		}
		seed = strings.Fields(rest)[0]
		var lines []string
		for line := range strings.Lines(out) {
			if _, what, ok := strings.Cut(line, "mobulatest: rule "); ok {
				lines = append(lines, what)
			}
		}
		faults = append(faults, strings.Join(lines, ""))
	}
	if faults[0] != faults[1] || strings.Count(faults[0], "fail at before mobulatest/add") < 3 {
		t.Errorf("the first run had\n%sand its replay\n%s", faults[0], faults[1])
	}
}

func TestInnerInvariant(t *testing.T) {
	if os.Getenv(innerEnv) == "" {
		return
	}
	plan := chaos.New(1)
	c := Start(t, WithFaults(plan))
	n := 0
	Invariant(t, c, func(ctx context.Context) error {
		chaos.Point(ctx, "looked")
		if n++; n == 3 {
			return errors.New("a sum is wrong")
		}
		return nil
	})
	if err := plan.Reached(t.Context(), "looked", 3); err != nil {
		t.Fatal(err)
	}
}

func TestAnInvariantIsCheckedMeanwhile(t *testing.T) {
	if out := fails(t, "TestInnerInvariant"); strings.Count(out, "the invariant does not hold: a sum is wrong") != 1 {
		t.Errorf("it says:\n%s", out)
	}
}

// Unavailable parts do not break the invariant while faults go on; at the end the check waits for them.
func TestAnInvariantWaitsForWhatIsAway(t *testing.T) {
	c := Start(t)
	seen := 0
	t.Cleanup(func() {
		if seen < 5 {
			t.Errorf("looked %d times", seen)
		}
	})
	Invariant(t, c, func(context.Context) error {
		if seen++; seen < 5 {
			return fmt.Errorf("not now: %w", mobula.ErrActorUnavailable)
		}
		return nil
	})
}

// What the check finds while the test ends counts.
func TestInnerInvariantAtTheEnd(t *testing.T) {
	if os.Getenv(innerEnv) == "" {
		return
	}
	c := Start(t)
	looks := make(chan struct{})
	first := true
	Invariant(t, c, func(context.Context) error {
		if !first {
			return nil
		}
		first = false
		close(looks)
		<-t.Context().Done()
		runtime.Gosched() // clean-up goes on
		return errors.New("a sum is wrong")
	})
	<-looks
}

func TestAnInvariantIsCheckedToTheEnd(t *testing.T) {
	if out := fails(t, "TestInnerInvariantAtTheEnd"); strings.Count(out, "the invariant does not hold: a sum is wrong") != 1 {
		t.Errorf("it says:\n%s", out)
	}
}
