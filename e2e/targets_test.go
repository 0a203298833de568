package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"mobula"
)

// Directories are added in front of the list, and one more is taken away: whatever lies in one that is still listed is read from there.
func TestSpillTargetsMoveInTheList(t *testing.T) {
	ctx, cancel := limit(t)
	defer cancel()
	a, b := filepath.Join(tempDir(t), "a"), filepath.Join(tempDir(t), "b")
	cfg := nodeConfig{Dir: tempDir(t), CPUs: 2, Store: 8 << 20, StoreDir: tempDir(t), Spill: []string{a}}
	p := mustLaunch(t, cfg)
	c, job := connect(t, ctx, p)
	var refs []mobula.Ref[[]float64]
	for range 12 {
		r, err := mobula.Put(job, make([]float64, 1<<18)) // 2 MiB
		must(t, err)
		refs = append(refs, r)
	}
	for _, urls := range [][]string{{b, a}, {a, b}, {tempDir(t), b, a}} {
		p.kill(t)
		cfg.Spill = urls
		p = mustLaunch(t, cfg)
		for i, r := range refs {
			if v, err := r.Get(job); err != nil || len(v) != 1<<18 {
				t.Errorf("object %d with %v: %d, %v", i, urls, len(v), err)
			}
		}
	}
	s, err := c.Status(job)
	must(t, err)
	if s.Store.Lost != 0 {
		t.Errorf("%+v", s.Store)
	}
}

// Another node has the same path for a while, as one on another host or in another container has that shares the directories of spilled
// objects and segments: neither touches what the other left.
func TestNodesOfTheSamePathKeepApart(t *testing.T) {
	ctx, cancel := limit(t)
	defer cancel()
	home := tempDir(t)
	cfg := nodeConfig{Dir: home, CPUs: 1, Store: 8 << 20, StoreDir: tempDir(t), Spill: []string{tempDir(t)}}
	var held []mobula.Ref[[]float64]
	fill := func(p *nodeProcess) {
		_, job := connect(t, ctx, p)
		for range 12 {
			r, err := mobula.Put(job, make([]float64, 1<<18)) // 2 MiB
			must(t, err)
			held = append(held, r)
		}
	}
	p := mustLaunch(t, cfg)
	fill(p)
	p.kill(t)
	left := append(spillFiles(t, cfg.Spill[0]), filesOf(cfg.StoreDir)...)
	if len(left) < 3 { // a segment, its index and what is spilled
		t.Fatalf("the first leaves %v", left)
	}

	must(t, os.Rename(home, filepath.Join(tempDir(t), "elsewhere")))
	p = mustLaunch(t, cfg)
	fill(p)
	p.kill(t)
	for _, path := range left {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the other node took it away: %v", err)
		}
	}
	runtime.KeepAlive(held)
	must(t, os.MkdirAll(home, 0o700)) // for the end of the test
}
