package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// noted notes its number down. Its argument is so large that few tasks fill a segment of their job's log.
var noted = mobula.Register3("e2e/noted", func(_ context.Context, file string, n int, _ []byte) (int, error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintln(f, n)
	return n, errors.Join(err, f.Close())
}, mobula.Retries(0))

const notedBulk = 16 << 10

// noteMany puts an object that is to be kept, and runs so many tasks.
func noteMany(t *testing.T, ctx context.Context, file string, from, tasks int) (kept mobula.Ref[int], refs []mobula.Ref[int]) {
	t.Helper()
	kept, err := mobula.Put(ctx, from)
	harness.Must(t, err)
	for i := range tasks {
		refs = append(refs, noted.Go(ctx, mobula.V(file), mobula.V(from+i), mobula.V(make([]byte, notedBulk))))
	}
	for _, ref := range refs {
		if _, err := ref.Get(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return kept, refs
}

func release(refs []mobula.Ref[int]) {
	for _, ref := range refs {
		ref.Release()
	}
}

// timesOf counts the lines of a file by the number that each is.
func timesOf(t *testing.T, file string) map[int]int {
	t.Helper()
	f, err := os.Open(file)
	harness.Must(t, err)
	defer f.Close()
	times := make(map[int]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n int
		_, err := fmt.Sscan(lines.Text(), &n)
		harness.Must(t, err)
		times[n]++
	}
	return times
}

// The disk of the logs is full: others have taken what was free, while all that the log had was live. A job that keeps something in each segment of its log,
// and lets go of all else, goes on writing its log. When the node is killed then, what was kept is there, and what had been let go of does not run again.
func TestTheLogGoesOnOnAFullDisk(t *testing.T) {
	if !harness.InMounts(t) {
		return
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 64 * harness.MiB, StoreDir: harness.TempDir(t)}
	logs := filepath.Join(cfg.Dir, "owner")
	harness.Must(t, os.Mkdir(logs, 0o700))
	tmpfsOn(t, logs, "64m")
	p := harness.MustLaunch(t, cfg)
	_, ctx = harness.Connect(t, ctx, p)
	file := filepath.Join(harness.TempDir(t), "ran")
	const tasks, before, during = 100, 5, 25 // 1.6 MiB of records a round
	var held []mobula.Ref[int]
	var all []mobula.Ref[int]
	for range before {
		kept, refs := noteMany(t, ctx, file, len(held)*tasks, tasks)
		held, all = append(held, kept), append(all, refs...)
	}
	filler := filepath.Join(logs, "filler")
	fillUp(t, filler)
	was := newestSegment(t, logs)
	release(all)
	for range during {
		kept, refs := noteMany(t, ctx, file, len(held)*tasks, tasks)
		held = append(held, kept)
		release(refs)
	}
	if now := newestSegment(t, logs); now < was+5 { // of at most 8 MiB
		t.Errorf("the log has come from segment %d to %d for %d MiB of records", was, now, during*tasks*notedBulk>>20)
	}
	p.Kill(t)
	harness.Must(t, os.Remove(filler))
	harness.MustLaunch(t, cfg)
	for i, ref := range held {
		if v, err := ref.Get(ctx); err != nil || v != i*tasks {
			t.Fatalf("object %d, after the kill: %d, %v", i, v, err)
		}
	}
	times := timesOf(t, file)
	for n := range len(held) * tasks {
		if times[n] != 1 {
			t.Errorf("task %d ran %d times", n, times[n])
		}
	}
}

// newestSegment is the number of the last segment of the first job's log.
func newestSegment(t *testing.T, logs string) (no int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(logs, "1", "*.oplog"))
	if harness.Must(t, err); len(files) == 0 {
		t.Fatal("the job has no log")
	}
	_, err = fmt.Sscanf(filepath.Base(files[len(files)-1]), "%x", &no)
	harness.Must(t, err)
	return no
}

// fillUp writes a file for as long as there is room.
func fillUp(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	harness.Must(t, err)
	defer f.Close()
	for b := make([]byte, 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// The log of a node in a program ends with it. For ordinary work there is no file of it, with a name or without.
func TestANodeInAProgramWritesNoLog(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	dir := harness.TempDir(t)
	n, ctx := harness.StartNode(t, ctx, node.Config{Dir: dir, CPUs: 2, StoreBytes: 64 * harness.MiB})
	file := filepath.Join(harness.TempDir(t), "ran")
	var held []mobula.Ref[int]
	const tasks = 20
	for range 60 { // 19 MiB of records
		kept, refs := noteMany(t, ctx, file, len(held)*tasks, tasks)
		held = append(held, kept)
		release(refs) // what is live beyond the log's share of memory goes to files
		harness.Eventually(t, ctx, "the round's objects are freed", func() bool { return harness.OwnerStats(t, ctx, n).Objects <= len(held) })
		links, err := filepath.Glob("/proc/self/fd/*")
		harness.Must(t, err)
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil && strings.Contains(to, ".oplog") {
				t.Fatalf("the log has a file: %s", to)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "owner", "*", "*"))
	if harness.Must(t, err); len(left) > 0 {
		t.Errorf("the log has files: %v", left)
	}
	for i, ref := range held {
		if v, err := ref.Get(ctx); err != nil || v != i*tasks {
			t.Errorf("object %d: %d, %v", i, v, err)
		}
	}
}
