package main

import (
	"context"
	"errors"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

const mib = 1 << 20

// TestSort sorts five times the store, with partitions of every size and nothing else changed.
func TestSort(t *testing.T) {
	for name, cfg := range map[string]config{
		"one a range":      {data: 80 * mib, store: 16 * mib, partitions: 32, workers: 2},
		"many a range":     {data: 80 * mib, store: 16 * mib, partitions: 500, workers: 2},
		"several ranges":   {data: 80 * mib, store: 16 * mib, partitions: 10, workers: 2},
		"one worker":       {data: 32 * mib, store: 16 * mib, partitions: 7, workers: 1},
		"more than needed": {data: 1 * mib, store: 16 * mib, partitions: 3000, workers: 8},
		"it all fits":      {data: 2 * mib, store: 64 * mib, partitions: 4, workers: 2},
	} {
		for _, mode := range []string{"embedded", "processes"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				opts := []mobula.StartOption{mobula.WithStore(cfg.store), mobula.WithCPUs(float64(cfg.workers))}
				if mode == "processes" {
					opts = append(opts, mobula.WithProcesses())
				}
				c := mobulatest.Start(t, opts...)
				w := newWatch(c, 0)
				r, err := run(c.Context(t.Context()), cfg, w, quiet{})
				w.stop(&r.usage)
				if err != nil {
					t.Fatal(err)
				}
				if r.Records != int(cfg.data/recordSize) {
					t.Errorf("%d records", r.Records)
				}
				if r.Spilled > 2*cfg.data {
					t.Errorf("%d bytes were spilled of %d", r.Spilled, cfg.data)
				}
				if cfg.data >= 4*cfg.store && r.Spilled == 0 {
					t.Error("nothing was spilled, or it was not counted")
				}
				t.Log(r)
			})
		}
	}
}

func TestAPartitionLargerThanTheStore(t *testing.T) {
	cfg := config{data: 64 * mib, store: 16 * mib, partitions: 2, workers: 2}
	c := mobulatest.Start(t, mobula.WithStore(cfg.store))
	w := newWatch(c, 0)
	defer w.stop(&usage{})
	if _, err := run(c.Context(t.Context()), cfg, w, quiet{}); !errors.Is(err, mobula.ErrObjectTooLarge) {
		t.Errorf("got %v, want ErrObjectTooLarge", err)
	}
}

// With the workers of many nodes a merge asks for no more CPUs than one of them has.
func TestAMergeFitsOnANode(t *testing.T) {
	cfg := config{data: 64 * mib, store: 16 * mib, partitions: 8, workers: 12}
	if p := newPlan(cfg); p.threads < 3 {
		t.Fatalf("a merge has %d threads", p.threads)
	}
	c := mobulatest.Start(t, mobula.WithStore(cfg.store), mobula.WithCPUs(2))
	w := newWatch(c, 0)
	defer w.stop(&usage{})
	if _, err := run(c.Context(t.Context()), cfg, w, quiet{}); err != nil {
		t.Error(err)
	}
}

func TestFloorDoesTheSameWork(t *testing.T) {
	cfg := config{data: 8 * mib, store: 8 * mib, partitions: 6, workers: 2, spill: t.TempDir()}
	took, err := floorTime(context.Background(), cfg, usage{Spilled: 6 * mib})
	if err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
}

func TestWatchSeesMemory(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithStore(32*mib))
	b, err := mobula.Create[byte](ctx, 8*mib)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Abort()
	clear(b.Slice())
	w := newWatch(nil, 0)
	w.sample()
	var u usage
	w.stop(&u)
	if u.Segment < 8*mib || u.PSS < u.Segment || u.Heap == 0 || u.Samples != 1 {
		t.Errorf("%+v", u)
	}
}
