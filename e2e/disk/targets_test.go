package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mobula"
	"mobula/e2e/harness"
)

// Directories are added in front of the list, and one more is taken away: whatever lies in one that is still listed is read from there.
func TestSpillTargetsMoveInTheList(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	a, b := filepath.Join(harness.TempDir(t), "a"), filepath.Join(harness.TempDir(t), "b")
	cfg := harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 2, Store: 8 << 20, StoreDir: harness.TempDir(t), Spill: []string{a}}
	p := harness.MustLaunch(t, cfg)
	c, job := harness.Connect(t, ctx, p)
	var refs []mobula.Ref[[]float64]
	for range 12 {
		r, err := mobula.Put(job, make([]float64, 1<<18)) // 2 MiB
		harness.Must(t, err)
		refs = append(refs, r)
	}
	for _, urls := range [][]string{{b, a}, {a, b}, {harness.TempDir(t), b, a}} {
		p.Kill(t)
		cfg.Spill = urls
		p = harness.MustLaunch(t, cfg)
		for i, r := range refs {
			if v, err := r.Get(job); err != nil || len(v) != 1<<18 {
				t.Errorf("object %d with %v: %d, %v", i, urls, len(v), err)
			}
		}
	}
	s, err := c.Status(job)
	harness.Must(t, err)
	if s.Store.Lost != 0 {
		t.Errorf("%+v", s.Store)
	}
}

// Another node has the same path for a while, as one on another host or in another container has that shares the directories of spilled
// objects and segments: neither touches what the other left.
func TestNodesOfTheSamePathKeepApart(t *testing.T) {
	ctx, cancel := harness.Limit(t)
	defer cancel()
	home := harness.TempDir(t)
	cfg := harness.NodeConfig{Dir: home, CPUs: 1, Store: 8 << 20, StoreDir: harness.TempDir(t), Spill: []string{harness.TempDir(t)}}
	var held []mobula.Ref[[]float64]
	fill := func(p *harness.NodeProcess) {
		_, job := harness.Connect(t, ctx, p)
		for range 12 {
			r, err := mobula.Put(job, make([]float64, 1<<18)) // 2 MiB
			harness.Must(t, err)
			held = append(held, r)
		}
	}
	p := harness.MustLaunch(t, cfg)
	fill(p)
	p.Kill(t)
	left := append(harness.SpillFiles(t, cfg.Spill[0]), harness.FilesOf(cfg.StoreDir)...)
	if len(left) < 3 { // a segment, its index and what is spilled
		t.Fatalf("the first leaves %v", left)
	}

	harness.Must(t, os.Rename(home, filepath.Join(harness.TempDir(t), "elsewhere")))
	p = harness.MustLaunch(t, cfg)
	fill(p)
	p.Kill(t)
	for _, path := range left {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the other node took it away: %v", err)
		}
	}
	runtime.KeepAlive(held)
	harness.Must(t, os.MkdirAll(home, 0o700)) // for the end of the test
}
