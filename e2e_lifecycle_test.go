package mobula_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula"
)

// notes is an actor that writes down in a file what happens to it.
type notes struct {
	path string
	fail bool
}

func newNotes(_ context.Context, path string) (*notes, error) {
	n := &notes{path: path, fail: strings.HasSuffix(path, "fails")}
	return n, n.write("made")
}

func (n *notes) write(what string) error {
	f, err := os.OpenFile(n.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.WriteString(what + "\n")
	return err
}

func (n *notes) Note(_ context.Context, what string) (string, error) { return what, n.write(what) }

func (n *notes) Slow(ctx context.Context, what string) (string, error) {
	select {
	case <-time.After(100 * time.Millisecond):
		return what, n.write(what)
	case <-ctx.Done():
		return what, n.write(what + " cut short")
	}
}

func (n *notes) Crash(context.Context) (int, error) {
	return 0, syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func (n *notes) Close(context.Context) error {
	if err := n.write("closed"); err != nil || !n.fail {
		return err
	}
	return errNope
}

var (
	noters    = mobula.RegisterActor1("e2e/notes", newNotes)
	noteDown  = mobula.RegisterMethod1(noters, "Note", (*notes).Note)
	noteSlow  = mobula.RegisterMethod1(noters, "Slow", (*notes).Slow)
	noteCrash = mobula.RegisterMethod0(noters, "Crash", (*notes).Crash)
)

func noter(ctx context.Context, t *testing.T, path string, opts ...mobula.ActorOption) mobula.ActorRef[notes] {
	t.Helper()
	a, err := noters.Spawn(ctx, mobula.V(path), opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

// noted waits until the file says this.
func noted(t *testing.T, path, want string) {
	t.Helper()
	var got string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		b, err := os.ReadFile(path)
		if got = strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", ", "); err == nil && got == want {
			return
		}
	}
	t.Fatalf("noted %q, want %q", got, want)
}

func TestAnActorIsClosedAtItsGracefulEnd(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		dir := t.TempDir()
		released := filepath.Join(dir, "released")
		a := noter(ctx, t, released)
		a.Release()
		noted(t, released, "made, closed")

		stopped := filepath.Join(dir, "stopped")
		a = noter(ctx, t, stopped)
		noteSlow.Go(ctx, a, mobula.V("one"))
		two := noteSlow.Go(ctx, a, mobula.V("two"))
		if err := a.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		noted(t, stopped, "made, one, two, closed")
		get(ctx, t, two, "two")
		if _, err := noteDown.Go(ctx, a, mobula.V("late")).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
			t.Errorf("a call after the stop gave %v", err)
		}
		if err := a.Stop(ctx); err != nil {
			t.Errorf("a second stop gave %v", err)
		}

		failing := filepath.Join(dir, "fails")
		a = noter(ctx, t, failing)
		if err := a.Stop(ctx); err == nil || !strings.Contains(err.Error(), errNope.Error()) {
			t.Errorf("the stop of an actor whose close fails gave %v", err)
		}

		killed := filepath.Join(dir, "killed")
		a = noter(ctx, t, killed)
		if err := a.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(dir, "next")
		b := noter(ctx, t, next, mobula.Named("", "noter"))
		if err := b.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		noted(t, next, "made, closed")
		noted(t, killed, "made")
		again := noter(ctx, t, next, mobula.Named("", "noter")) // the name is free when Stop has returned
		defer again.Release()
		noted(t, next, "made, closed, made")
	})
}

func TestActorsAreClosedWithTheirNode(t *testing.T) {
	for name, opts := range map[string][]mobula.StartOption{"embedded": nil, "processes": {mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := mobula.Start(t.Context(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			ctx := c.Context(t.Context())
			path, own := filepath.Join(dir, "shared"), filepath.Join(dir, "own")
			a, b := noter(ctx, t, path), noter(ctx, t, own, mobula.Isolated())
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			noted(t, path, "made, closed")
			noted(t, own, "made, closed")
			_, _ = a, b
		})
	}
}
