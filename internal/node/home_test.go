package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"mobula/internal/home"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
)

// keptDir is a directory that only its user may enter, with one for the store.
func keptDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "n")
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startKept starts a node that keeps its directory, and stops it in order at the end of the test at the latest.
func startKept(t *testing.T, dir string, moved bool) (*Node, error) {
	t.Helper()
	return Start(t.Context(), Config{Dir: dir, Keep: true, Moved: moved, StoreBytes: 8 << 20, StoreDir: filepath.Join(dir, "store"), NoGCS: true, Logger: slog.New(slog.DiscardHandler)})
}

func TestANodeIsNotStartedInACopy(t *testing.T) {
	dir, to := keptDir(t), keptDir(t)
	stop := func(n *Node, err error) {
		t.Helper()
		if err == nil {
			err = n.Close(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	stop(startKept(t, dir, false))
	for _, name := range []string{identityName, "home"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := startKept(t, to, false); !errors.Is(err, register.ErrCopied) {
		t.Fatalf("in a copy: %v", err)
	}
	stop(startKept(t, to, true))
	stop(startKept(t, to, false))
	stop(startKept(t, dir, false))
}

// No job, client, worker or lease has a number that one of an earlier life had, though nothing else is left of that life.
func TestNoLifeGivesOutTheIDsOfAnother(t *testing.T) {
	dir := keptDir(t)
	var job ids.JobID
	var client, lease, worker uint64
	var epoch uint64
	for range 3 {
		n, err := startKept(t, dir, false)
		if err != nil {
			t.Fatal(err)
		}
		j, err := n.jobs.newJob(false)
		if err != nil {
			t.Fatal(err)
		}
		s, err := n.sessions.begin(1, j, 1)
		if err != nil {
			t.Fatal(err)
		}
		n.numbers.granted(n.numbers.lastLease(0) + 3)
		n.numbers.startedWorker(ids.WorkerID(n.numbers.Last(home.Workers) + 1))
		l, w := n.numbers.Last(home.Leases), n.numbers.Last(home.Workers)
		if e := n.numbers.newEpoch(); j <= job || uint64(s.id) <= client || l <= lease || w <= worker || e <= epoch {
			t.Errorf("job %v after %v, client %v after %d, lease %d after %d, worker %d after %d, epoch %d after %d", j, job, s.id, client, l, lease, w, worker, e, epoch)
		} else {
			job, client, lease, worker, epoch = j, uint64(s.id), l, w, e
		}
		n.jobs.ref.Deliver(jobs.Over{Job: j})
		if err := n.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
