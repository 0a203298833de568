package api

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// overdraft is an error type of the program's own.
type overdraft struct {
	Account string
	Missing int
	Err     error
}

func (o *overdraft) Error() string {
	return fmt.Sprintf("%s is %d short: %v", o.Account, o.Missing, o.Err)
}
func (o *overdraft) Unwrap() error { return o.Err }

func init() { mobula.RegisterErrorType[*overdraft]("e2e/overdraft") }

var e2eOverdraft = mobula.Register1("e2e/overdraft", func(_ context.Context, account string) (int, error) {
	return 0, fmt.Errorf("transfer: %w", &overdraft{account, 7, fmt.Errorf("books: %w", errNope)})
})

func TestAnErrorOfARegisteredTypeArrivesAsThatType(t *testing.T) {
	both(t, func(ctx context.Context, t *testing.T) {
		_, err := e2eOverdraft.Go(ctx, mobula.V("alice")).Get(ctx)
		var o *overdraft
		if !errors.As(err, &o) || o.Account != "alice" || o.Missing != 7 || !errors.Is(o.Err, errNope) || !errors.Is(err, errNope) {
			t.Fatalf("got %v: %+v", err, o)
		}
		var te *mobula.TaskError
		if !errors.As(err, &te) || te.Name != "e2e/overdraft" || !errors.Is(err, mobula.ErrTaskFailed) {
			t.Errorf("as a task's error: %+v", te)
		}
	})
}

// matches gives the sentinels, of those that tell of actors, tasks and connections, that an error is.
func matches(err error) string {
	var out strings.Builder
	for _, s := range []struct {
		name string
		err  error
	}{
		{"died", mobula.ErrActorDied}, {"unavailable", mobula.ErrActorUnavailable}, {"crashed", mobula.ErrWorkerCrashed},
		{"failed", mobula.ErrTaskFailed}, {"disconnected", mobula.ErrDisconnected}, {"cancelled", mobula.ErrCancelled}, {"nope", errNope},
	} {
		if errors.Is(err, s.err) {
			out.WriteString(s.name + " ")
		}
	}
	if te := new(mobula.TaskError); errors.As(err, &te) {
		out.WriteString("*TaskError ")
	}
	return out.String()
}

// An actor's error says one thing: that it restarts, or that it is dead.
func TestActorErrorsMatchOneSentinel(t *testing.T) {
	t.TempDir() // made before the runtime, removed after it: a call that is killed may still write when its caller has the error
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	want := func(what string, r mobula.Ref[int], want string) {
		t.Helper()
		_, err := r.Get(ctx)
		if got := matches(err); got != want {
			t.Errorf("%s matches %q, want %q: %v", what, got, want, err)
		}
	}
	settle := func(ctx context.Context, a mobula.ActorRef[tally]) {
		t.Helper()
		testkit.Eventually(t, "the actor has settled", func() bool {
			_, err := tallyInc.Go(ctx, a, mobula.V(1)).Get(ctx)
			return err == nil
		})
	}
	again := spawn(ctx, t, 0, mobula.MaxRestarts(4), mobula.Isolated(), mobula.Named("", "again"))
	want("the call that ends a process which restarts", tallyDie.Go(ctx, again), "unavailable ")
	settle(ctx, again)
	held := tallyHold.Go(ctx, again, mobula.V(t.TempDir()), mobula.V("x"))
	if err := again.Kill(ctx, mobula.WithRestart()); err != nil {
		t.Fatal(err)
	}
	want("a call on an actor that is killed to restart", held, "unavailable ")

	once := spawn(ctx, t, 0, mobula.Isolated())
	want("the call that ends a process for good", tallyDie.Go(ctx, once), "died ")
	want("a call of a dead actor", tallyInc.Go(ctx, once, mobula.V(1)), "died ")
	unborn := spawn(ctx, t, -1)
	want("a call of an actor whose constructor failed", tallyInc.Go(ctx, unborn, mobula.V(1)), "died failed nope *TaskError ")
	killed := spawn(ctx, t, 0)
	if err := killed.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	want("a call of an actor that was killed", tallyInc.Go(ctx, killed, mobula.V(1)), "died ")

	// The same from another job, whose own connection to the actor's process is what it loses.
	other, err := mobula.Connect(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(context.Background()) })
	octx := other.Context(t.Context())
	settle(ctx, again)
	found, err := mobula.GetActor[tally](octx, "", "again")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tallyInc.Go(octx, found, mobula.V(1)).Get(octx); err != nil {
		t.Fatal(err)
	}
	want("another job's call that ends a process which restarts", tallyDie.Go(octx, found), "unavailable ")
	running := func(name string) mobula.Ref[int] {
		t.Helper()
		settle(octx, found) // this job hears later than the actor's own that it is back
		dir := t.TempDir()
		held := tallyHold.Go(octx, found, mobula.V(dir), mobula.V(name))
		testkit.Eventually(t, "the other job's call runs", exists(filepath.Join(dir, name+".began")))
		return held
	}
	for _, x := range []struct{ what, matches string }{
		{"another job's call on an actor that is killed to restart", "unavailable "},
		{"another job's call on an actor that is killed to restart, and has no restart left", "died "},
	} {
		held := running("y")
		if err := again.Kill(ctx, mobula.WithRestart()); err != nil {
			t.Fatal(err)
		}
		want(x.what, held, x.matches)
	}
	last := spawn(ctx, t, 0, mobula.Isolated(), mobula.Named("", "last"))
	if found, err = mobula.GetActor[tally](octx, "", "last"); err != nil {
		t.Fatal(err)
	}
	settle(octx, found)
	want("another job's call that ends a process for good", tallyDie.Go(octx, found), "died ")
	want("a call of another job's dead actor", tallyInc.Go(octx, found, mobula.V(1)), "died ")
	runtime.KeepAlive(last)
}
