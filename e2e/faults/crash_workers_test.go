package faults

import (
	"errors"
	"syscall"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/internal/testkit"
)

// Worker processes are killed at random while thousands of tasks run and the live objects are four times the
// store: every result is right, and the retries are counted.
func TestWorkersAreKilled(t *testing.T) {
	const each = 1 << 20
	store, kills := harness.Size(16, 256)<<20, harness.Size(8, 40)
	seed, r := testkit.Seed(t), testkit.Rand(t)
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 2, StoreBytes: uint64(store), Processes: true})
	l := newLoad(t, ctx, 4*store, each)
	l.kills = true
	stop := make(chan struct{})
	wg := l.run(seed, harness.Size(2000, 10_000), stop)
	var s node.OwnerStats
	killed := 0
	for killed < kills || s.Retried+s.Isolated == 0 {
		before := l.tasks.Load()
		// The next kill comes when the one before has been survived: some work was done since.
		harness.Eventually(t, ctx, "work goes on after a kill", func() bool { return l.tasks.Load() > before+int64(r.IntN(300)) })
		pids := harness.WorkersOf(n.Address())
		if len(pids) == 0 {
			continue // the last one is gone, the next one not yet there
		}
		if err := syscall.Kill(pids[r.IntN(len(pids))], syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			t.Fatalf("kill %d: %v", killed, err)
		}
		killed++
		s = harness.OwnerStats(t, ctx, n)
	}
	close(stop)
	wg.Wait()
	l.check()
	harness.Eventually(t, ctx, "the deaths are counted", func() bool { return harness.OwnerStats(t, ctx, n).WorkersLost > 0 })
	s = harness.OwnerStats(t, ctx, n)
	t.Logf("%d tasks, %d kills, %d workers lost with work on them, %d tasks tried again and charged, %d alone and not charged", l.tasks.Load(), killed, s.WorkersLost, s.Retried, s.Isolated)
}

// One task that kills its process each time is the only one to fail: those that ran beside it
// were not to blame.
func TestFaultOnlyTheCulpritIsCharged(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 4, StoreBytes: 64 << 20, Processes: true})
	var good []mobula.Ref[float64]
	more := func() {
		for range 50 {
			good = append(good, harness.Add.Go(ctx, mobula.V(float64(len(good))), mobula.V(1.0), mobula.Retries(1)))
		}
	}
	more()
	bad := exits.Go(ctx, mobula.V(7), mobula.Retries(2))
	more()
	if v, err := bad.Get(ctx); !errors.Is(err, mobula.ErrWorkerCrashed) {
		t.Errorf("a task that ends its process: %v, %v", v, err)
	}
	got, err := mobula.GetAll(ctx, good)
	if err != nil {
		t.Fatalf("a task beside the culprit: %v", err)
	}
	for i, v := range got {
		if v != float64(i+1) {
			t.Errorf("task %d gave %v", i, v)
		}
	}
}
