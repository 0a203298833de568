package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
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
	defer func() {
		if got != want {
			t.Logf("noted %q, want %q", got, want)
		}
	}()
	testkit.Eventually(t, fmt.Sprintf("noted %q", want), func() bool {
		b, err := os.ReadFile(path)
		got = strings.ReplaceAll(strings.TrimSpace(string(b)), "\n", ", ")
		return err == nil && got == want
	})
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

// self is an actor that keeps a reference to itself, and calls itself.
type self struct {
	me   mobula.ActorRef[self]
	seen []string
	in   bool
	path string
	tick *mobula.Timer
}

func newSelf(ctx context.Context, path string) (*self, error) {
	me, err := mobula.Self[self](ctx)
	if err != nil {
		return nil, err
	}
	if err := me.Ready(ctx); err != nil { // it does not wait for itself
		return nil, err
	}
	s := &self{me: me, path: path}
	if path != "" {
		s.tick, err = selfNote.Every(ctx, 5*time.Millisecond, mobula.V("tick"))
	}
	return s, err
}

func (s *self) Note(_ context.Context, what string) (int, error) {
	if s.in {
		return 0, errors.New("two calls at once")
	}
	if what == "fail" {
		return 0, errNope
	}
	s.in = true
	time.Sleep(time.Millisecond) // not to wait for something: another call would find it at work
	s.in = false
	s.seen = append(s.seen, what)
	return len(s.seen), nil
}

func (s *self) Seen(context.Context) (string, error) { return strings.Join(s.seen, " "), nil }

func (s *self) Me(context.Context) (mobula.ActorRef[self], error) { return s.me, nil }

func (s *self) Later(ctx context.Context, what string) (mobula.Void, error) {
	if err := selfNote.Tell(ctx, s.me, mobula.V(what)); err != nil {
		return mobula.Void{}, err
	}
	_, err := selfNote.After(ctx, time.Millisecond, mobula.V(what+" later"))
	return mobula.Void{}, err
}

func (s *self) End(ctx context.Context) (mobula.Void, error) { return mobula.Void{}, s.me.Stop(ctx) }

func (s *self) StopTimer(context.Context) (mobula.Void, error) {
	s.tick.Stop()
	return mobula.Void{}, nil
}

func (s *self) Close() error {
	if s.path == "" {
		return nil
	}
	return os.WriteFile(s.path, []byte("closed"), 0o600)
}

var (
	selves    = mobula.RegisterActor1("e2e/self", newSelf)
	selfNote  mobula.Method1[self, string, int]
	selfSeen  = mobula.RegisterMethod0(selves, "Seen", (*self).Seen)
	selfMe    = mobula.RegisterMethod0(selves, "Me", (*self).Me)
	selfLater = mobula.RegisterMethod1(selves, "Later", (*self).Later)
	selfEnd   = mobula.RegisterMethod0(selves, "End", (*self).End)
	selfQuiet = mobula.RegisterMethod0(selves, "StopTimer", (*self).StopTimer)
)

func init() { // the constructor uses it: as a variable's value it would depend on itself
	selfNote = mobula.RegisterMethod1(selves, "Note", (*self).Note)
}

func spawnSelf(ctx context.Context, t *testing.T, path string) mobula.ActorRef[self] {
	t.Helper()
	a, err := selves.Spawn(ctx, mobula.V(path))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnActorHasAReferenceToItselfThatDoesNotHoldIt(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		path := filepath.Join(t.TempDir(), "closed")
		a := spawnSelf(ctx, t, path)
		me := selfMe.Go(ctx, a)
		again, err := me.Get(ctx) // passed on, it holds
		if err != nil || again.ID() != a.ID() {
			t.Fatalf("it says that it is %v, %v, want %v", again, err, a)
		}
		me.Release() // the result holds it too
		a.Release()
		if _, err := selfNote.Go(ctx, again, mobula.V("x")).Get(ctx); err != nil {
			t.Fatal(err)
		}
		again.Release() // its timer and its own reference do not hold it
		noted(t, path, "closed")
		if _, err := mobula.Self[self](ctx); !errors.Is(err, mobula.ErrInvalid) {
			t.Errorf("outside an actor: %v", err)
		}
	})
}

func TestTellsAreInOrderAndTimersTickBetweenCalls(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		a := spawnSelf(ctx, t, "")
		for _, what := range []string{"1", "fail", "2"} {
			if err := selfNote.Tell(ctx, a, mobula.V(what)); err != nil {
				t.Fatal(err)
			}
		}
		get(ctx, t, selfNote.Go(ctx, a, mobula.V("3")), 3)
		get(ctx, t, selfSeen.Go(ctx, a), "1 2 3")
		get(ctx, t, selfLater.Go(ctx, a, mobula.V("4")), mobula.Void{})
		testkit.Eventually(t, "4 later seen last", func() bool {
			seen, err := selfSeen.Go(ctx, a).Get(ctx)
			if err != nil {
				t.Fatalf("seen %q, %v", seen, err)
			}
			return strings.HasSuffix(seen, "4 later")
		})

		b := spawnSelf(ctx, t, filepath.Join(t.TempDir(), "b"))
		testkit.Eventually(t, "20 calls, ticks among them", func() bool {
			n, err := selfNote.Go(ctx, b, mobula.V("call")).Get(ctx)
			if err != nil {
				t.Fatalf("%d calls, %v", n, err)
			}
			return n >= 20
		})
		get(ctx, t, selfQuiet.Go(ctx, b), mobula.Void{})
		if seen, err := selfSeen.Go(ctx, b).Get(ctx); err != nil || !strings.Contains(seen, "tick") {
			t.Errorf("no tick among %q, %v", seen, err)
		}
		get(ctx, t, selfEnd.Go(ctx, b), mobula.Void{}) // it ends itself
		for ev, err := range mobula.Watch(ctx, b) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Phase == mobula.ActorDead && !errors.Is(ev.Err, mobula.ErrActorDied) {
				t.Errorf("it died of %v", ev.Err)
			}
		}
	})
}

func TestAWatchTellsRestartsAndTheEnd(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithCPUs(2), mobula.WithProcesses())
	a := noter(ctx, t, filepath.Join(t.TempDir(), "n"), mobula.MaxRestarts(1))
	var last mobula.ActorEvent
	restarted := false
	for ev, err := range mobula.Watch(ctx, a) {
		if err != nil {
			t.Fatal(err)
		}
		if last = ev; ev.Phase != mobula.ActorAlive {
			continue
		}
		restarted = restarted || ev.Restarts == 1
		noteCrash.Go(ctx, a)
	}
	if !restarted || last.Phase != mobula.ActorDead || !errors.Is(last.Err, mobula.ErrActorDied) {
		t.Errorf("restarted %v, at last %+v", restarted, last)
	}
	for ev, err := range mobula.Watch(ctx, a) { // of one that is dead already
		if err != nil || ev.Phase != mobula.ActorDead {
			t.Errorf("afterwards: %+v, %v", ev, err)
		}
	}
}
