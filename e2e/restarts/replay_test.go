package restarts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// scribe writes down which of its calls ran.
type scribe struct{ file string }

var (
	scribeType = mobula.RegisterActor1("e2e/scribe", func(_ context.Context, file string) (*scribe, error) { return &scribe{file}, nil }, mobula.MaxRestarts(-1), mobula.MaxTaskRetries(0))
	scribeNote = mobula.RegisterMethod1(scribeType, "Note", (*scribe).Note)
	noteDown   = mobula.Register2("e2e/note-down", func(_ context.Context, file string, n int) (int, error) { return n, appendLine(file, n) })
)

func (s *scribe) Note(_ context.Context, n int) (int, error) { return n, appendLine(s.file, n) }

func appendLine(file string, n int) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(f, n); err != nil {
		return err
	}
	return f.Close()
}

// linesOf counts the lines of a file by the number that each is.
func linesOf(t *testing.T, file string) map[int]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := make(map[int]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int
		if _, err := fmt.Sscan(lines.Text(), &n); err != nil {
			t.Fatal(err)
		}
		out[n]++
	}
	return out
}

// A driver has the results of calls and tasks and has let go of them when its node is killed. It submits them once more when the node is back, and
// none runs a second time.
func TestWhatWasHadBeforeAKillDoesNotRunAgain(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	file := filepath.Join(harness.TempDir(t), "ran")
	a, err := scribeType.Spawn(ctx, mobula.V(file))
	if err != nil {
		t.Fatal(err)
	}
	next, had := 0, make(map[int]bool)
	run := func(submit func(n int) mobula.Ref[int]) {
		for {
			next++
			ref := submit(next)
			n, err := ref.Get(ctx)
			ref.Release()
			if err == nil {
				had[n] = true
				return
			}
			if !errors.Is(err, mobula.ErrActorUnavailable) || ctx.Err() != nil {
				t.Fatalf("number %d: %v", next, err)
			}
		}
	}
	both := func() {
		run(func(n int) mobula.Ref[int] { return scribeNote.Go(ctx, a, mobula.V(n)) })
		run(func(n int) mobula.Ref[int] { return noteDown.Go(ctx, mobula.V(file), mobula.V(n)) })
	}
	for range harness.Size(3, 20) {
		for range 50 {
			both()
		}
		p.Kill(t)
		p = harness.MustLaunch(t, cfg)
		both() // behind all that was submitted again
	}
	ran := linesOf(t, file)
	for n := range next + 1 {
		if ran[n] > 1 || had[n] && ran[n] != 1 {
			t.Errorf("number %d ran %d times; its result was had: %v", n, ran[n], had[n])
		}
	}
}
