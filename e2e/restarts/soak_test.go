package restarts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/testkit"
)

// soakFor is how long TestSoak runs at least, for as many jobs as it takes; `make soak` says 30m.
var soakFor, _ = time.ParseDuration(os.Getenv("MOBULA_SOAK"))

// soakJobs are the short jobs of a soak: a whole one, and the quick one of every test run.
const (
	soakJobs      = 10_000
	soakJobsQuick = 30
)

// footprint is what a node holds when nothing runs.
type footprint struct{ heap, descriptors, threads, disk, shared int }

func (f footprint) String() string {
	return fmt.Sprintf("heap %d KiB, %d descriptors, %d threads, directories %d KiB, shared memory %d KiB", f.heap>>10, f.descriptors, f.threads, f.disk>>10, f.shared>>10)
}

// flat tells what of a node has grown since it was f, beyond what its bounded rings and logs may take.
func (f footprint) flat(now footprint) error {
	var es []error
	for _, x := range []struct {
		what           string
		was, is, spare int
	}{
		{"the heap", f.heap, now.heap, max(f.heap/10, 4*harness.MiB)},
		{"descriptors", f.descriptors, now.descriptors, 8},
		{"threads", f.threads, now.threads, 8},
		{"the directories", f.disk, now.disk, max(f.disk/10, 8*harness.MiB)},
		{"shared memory", f.shared, now.shared, harness.MiB},
	} {
		if x.is > x.was+x.spare {
			es = append(es, fmt.Errorf("%s: %d, and %d before: it grows", x.what, x.is, x.was))
		}
	}
	return errors.Join(es...)
}

// Short jobs come and go while workers are killed: nothing of them stays with the node.
func TestSoak(t *testing.T) {
	jobs, d := soakJobsQuick, 3*time.Minute
	if soakFor > 0 {
		jobs, d = soakJobs, 2*soakFor+10*time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t), Spill: []string{harness.TempDir(t)}}
	p := harness.MustLaunch(t, cfg)
	began := time.Now()
	seed := testkit.Seed(t)
	var done atomic.Int64
	part := func(n int, long time.Duration) {
		t.Helper()
		end := time.Now().Add(long)
		g, run := errgroup.WithContext(ctx)
		left := atomic.Int64{}
		left.Store(int64(n))
		for w := range 3 {
			rng := rand.New(rand.NewPCG(seed+uint64(w), uint64(done.Load())))
			g.Go(func() error {
				for left.Add(-1) >= 0 || time.Now().Before(end) {
					if err := shortJob(run, p.Address, rng.IntN(10)); err != nil {
						return err
					}
					if done.Add(1)%20 == 0 {
						if pids := harness.WorkersOf(p.Address); len(pids) > 0 {
							_ = syscall.Kill(pids[rng.IntN(len(pids))], syscall.SIGKILL) // it may have ended by itself
						}
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatalf("after %d jobs: %v", done.Load(), err)
		}
	}
	measure := func() footprint {
		t.Helper()
		f := footprint{heap: p.Heap(t), descriptors: entries(t, p, "fd"), threads: entries(t, p, "task"), shared: bytesIn(t, cfg.StoreDir)}
		for _, dir := range append([]string{cfg.Dir}, cfg.Spill...) {
			f.disk += bytesIn(t, dir)
		}
		return f
	}
	look := func() footprint {
		t.Helper()
		harness.Eventually(t, ctx, "the workers of jobs that are over have ended", func() bool { return len(harness.WorkersOf(p.Address)) == 0 })
		f := measure()
		t.Logf("%v, %d jobs: %v", time.Since(began).Round(time.Second), done.Load(), f)
		return f
	}
	part(jobs/10, soakFor/10)
	look()
	p.Kill(t) // what the jobs before have left is found by the node's next life, too
	p = harness.MustLaunch(t, cfg)
	part(jobs/10*4, soakFor/10*4) // rings and logs fill
	was := look()
	for range 5 {
		part(jobs/10, soakFor/10)
		// The last jobs' connections are being closed: what they held goes within a moment, a leak stays.
		for err := was.flat(look()); err != nil; err = was.flat(measure()) {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				t.Fatal(err)
			}
		}
	}
}

// shortJob joins, does one thing, and leaves; what it has made it does not release.
func shortJob(ctx context.Context, address string, what int) (err error) {
	c, err := mobula.Connect(ctx, address, mobula.ConnectLogger(harness.Quiet()))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close(context.WithoutCancel(ctx))) }()
	job := c.Context(ctx)
	switch what {
	case 0: // an object that nobody releases
		_, err = mobula.Put(job, make([]byte, harness.MiB))
	case 1: // an actor that is called, and left
		a, err := harness.CounterType.Spawn(job, mobula.V(1))
		if err != nil {
			return err
		}
		// A worker may be killed beside it: what it says then is not asked.
		_, _ = harness.CounterInc.Go(job, a, mobula.V(1)).Get(job)
	case 2: // tasks that nobody waits for
		for range 20 {
			harness.Fill.Go(job, mobula.V(1<<10), mobula.V(1.0))
		}
	default:
		v, err := harness.Add.Go(job, mobula.V(1.0), mobula.V(2.0), mobula.Retries(-1)).Get(job)
		if err != nil || v != 3 {
			return fmt.Errorf("1 and 2 are %v, %w", v, err)
		}
	}
	return err
}

// entries counts what lies in a folder of the process's in /proc.
func entries(t *testing.T, p *harness.NodeProcess, folder string) int {
	t.Helper()
	es, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(p.Cmd.Process.Pid), folder))
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

// bytesIn is what the files in and below a folder take, in bytes.
func bytesIn(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went meanwhile
		}
		n += int(st.Blocks) * 512
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A driver that leaves while answers are on their way to it leaves nothing with the node, though its process goes on.
func TestWhoLeavesWithAnswersUnreadLeavesNothing(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 32 * harness.MiB, StoreDir: harness.TempDir(t)}
	p := harness.MustLaunch(t, cfg)
	for range 30 {
		if err := shortJob(ctx, p.Address, 2); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, ctx, "the files of the jobs are gone", func() bool {
		files, err := filepath.Glob(filepath.Join(cfg.StoreDir, "*.job*"))
		return err == nil && len(files) == 0
	})
}
