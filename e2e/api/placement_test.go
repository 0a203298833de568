package api

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/internal/testkit"
	"mobula/mobulatest"
)

// actorState finds an actor in the list.
func actorState(ctx context.Context, t *testing.T, c *mobula.Cluster, id string) mobula.ActorState {
	t.Helper()
	page, err := c.ListActors(ctx, mobula.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range page.Rows {
		if a.ID == id {
			return a
		}
	}
	t.Fatalf("actor %s is not listed", id)
	return mobula.ActorState{}
}

// Of the actors of one process only the one that brings it down is charged, and it comes back apart from the others.
func TestANeighboursCrashIsNotCharged(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	innocent, bad := spawn(ctx, t, 10), spawn(ctx, t, 0, mobula.MaxRestarts(1))
	pid := func(a mobula.ActorRef[tally]) (n int) {
		t.Helper()
		testkit.Eventually(t, "the actor answers", func() bool {
			var err error
			n, err = tallyPID.Go(ctx, a).Get(ctx)
			return err == nil
		})
		return n
	}
	if pid(innocent) != pid(bad) {
		t.Fatal("two actors of a job do not share a process")
	}
	if _, err := tallyDie.Go(ctx, bad).Get(ctx); !errors.Is(err, mobula.ErrActorUnavailable) {
		t.Errorf("the call that ended the process: %v", err)
	}
	if pid(innocent) == pid(bad) {
		t.Error("the one that brought the process down is beside the other again")
	}
	get(ctx, t, tallyInc.Go(ctx, innocent, mobula.V(1)), 11) // made anew
	for a, want := range map[mobula.ActorRef[tally]][2]int{innocent: {0, 1}, bad: {1, 0}} {
		s := actorState(ctx, t, c, a.ID())
		if s.Restarts != want[0] || s.Resets != want[1] || !strings.Contains(s.Reason, "signal: killed") {
			t.Errorf("%d restarts and %d resets, want %v, because of %q", s.Restarts, s.Resets, want, s.Reason)
		}
	}
	if _, err := tallyDie.Go(ctx, bad).Get(ctx); !errors.Is(err, mobula.ErrActorDied) {
		t.Errorf("the second time: %v", err)
	}
	get(ctx, t, tallyInc.Go(ctx, innocent, mobula.V(1)), 12)
}

// Where actors live is the program's to say.
func TestActorsArePlaced(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	var pids []int
	for _, o := range [][]mobula.ActorOption{nil, nil, {mobula.Process("a")}, {mobula.Process("a")}, {mobula.Process("b")}, {mobula.Isolated()}, {mobula.Isolated()}} {
		a := spawn(ctx, t, 0, o...)
		t.Cleanup(a.Release)
		pid, err := tallyPID.Go(ctx, a).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if pids[0] != pids[1] || pids[2] != pids[3] {
		t.Errorf("who should share does not: %v", pids)
	}
	for i, p := range []int{0, 2, 4, 5, 6} {
		for _, q := range []int{0, 2, 4, 5, 6}[i+1:] {
			if pids[p] == pids[q] {
				t.Errorf("actors %d and %d share a process: %v", p, q, pids)
			}
		}
	}
	if _, err := tallies.Spawn(ctx, mobula.V(0), mobula.Isolated(), mobula.Process("a")); !errors.Is(err, mobula.ErrInvalid) {
		t.Errorf("both: %v", err)
	}
}

type leaver struct{}

var leavers = mobula.RegisterActor1("e2e/leaver", func(_ context.Context, dir string) (*leaver, error) {
	f, err := os.CreateTemp(dir, "run")
	if err != nil {
		return nil, err
	}
	_ = f.Close()
	os.Exit(1)
	return nil, nil
})

// A constructor that ends its process is run again ever less often, and explain says when.
func TestAConstructorThatExitsBacksOff(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	dir := t.TempDir()
	a, err := leavers.Spawn(ctx, mobula.V(dir), mobula.MaxRestarts(-1))
	if err != nil {
		t.Fatal(err)
	}
	runs := func() (at []time.Time) {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, info.ModTime())
		}
		slices.SortFunc(at, time.Time.Compare)
		return at
	}
	testkit.Eventually(t, "explain says when it restarts, and why", func() bool {
		ex, err := c.Explain(ctx, a.ID())
		return err == nil && strings.Contains(ex.Summary, "restarting in ") && strings.Contains(ex.Summary, "exited with status 1")
	})
	testkit.Eventually(t, "run six times", func() bool { return len(runs()) >= 6 })
	at := runs()
	for i, least := 2, 50*time.Millisecond; i < len(at); i, least = i+1, 2*least { // the first time at once, then after 0.1, 0.2, 0.4, 0.8 s, give or take a quarter
		if d := at[i].Sub(at[i-1]); d < least {
			t.Errorf("run %d came %v after the one before, want %v at least", i+1, d, least)
		}
	}
}
