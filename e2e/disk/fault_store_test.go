package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// crowd makes an array when so many tasks have its like as argument at the same time.
var crowd = mobula.Register4("e2e/crowd", func(ctx context.Context, xs []float64, n, tasks int, dir string) ([]float64, error) {
	f, err := os.CreateTemp(dir, "began-")
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		all, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		if len(all) >= tasks {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d tasks run: %w", len(all), tasks, context.Cause(ctx))
		}
	}
	out, err := mobula.CreateResult[float64](ctx, 0, n)
	if err != nil {
		return nil, err
	}
	for i := range out.Slice() {
		out.Slice()[i] = xs[i%len(xs)]
	}
	return out.Slice(), nil
})

func TestFaultObjectLargerThanTheStore(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		held, err := mobula.Put(ctx, harness.Array(4*harness.MiB, 1))
		if err != nil {
			t.Fatal(err)
		}
		v, err := held.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		figures := []string{"16777224 bytes asked", "limit 16777216", "held 4194304", "pinned 4194304"}
		_, err = mobula.Put(ctx, harness.Array(16*harness.MiB+8, 1))
		harness.WantErr(t, "a put", err, mobula.ErrObjectTooLarge, figures...)
		_, err = mobula.Create[float64](ctx, 2*harness.MiB+1)
		harness.WantErr(t, "a buffer", err, mobula.ErrObjectTooLarge, figures...)
		_, err = harness.Fill.Go(ctx, mobula.V(2*harness.MiB+1), mobula.V(1.0)).Get(ctx)
		harness.WantErr(t, "a result", err, mobula.ErrObjectTooLarge, figures...)
		_, err = harness.Sum.Go(ctx, mobula.V(harness.Array(16*harness.MiB+8, 1))).Get(ctx)
		harness.WantErr(t, "an argument", err, mobula.ErrObjectTooLarge, figures...)
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if s, err := harness.Sum.Go(ctx, held).Get(ctx); err != nil || s != 4*harness.MiB/8 {
			t.Errorf("the object beside it: %v, %v", s, err)
		}
	})
}

// The arguments of two tasks take 70 % of the store, their results 80 %: neither can go on
// without the other's room.
func TestFaultTwoTasksThatNeedEachOthersRoom(t *testing.T) {
	const store = 40 * harness.MiB
	harness.BothModes(t, node.Config{CPUs: 2, StoreBytes: store}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		const args, result = store * 34 / 100 / 8 * 8, store * 40 / 100 / 8 * 8 // both round up to 64 KiB
		for round := range 3 {
			dir := harness.TempDir(t)
			var refs []mobula.Ref[[]float64]
			for i := range 2 {
				arg, err := mobula.Put(ctx, harness.Array(args, float64(i+1)))
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, crowd.Go(ctx, arg, mobula.V(result/8), mobula.V(2), mobula.V(dir)))
			}
			for i, r := range refs {
				if xs, err := r.Get(ctx); err != nil || !harness.Holds(xs, result, float64(i+1)) {
					t.Fatalf("round %d, task %d: %d elements, %v", round, i, len(xs), err)
				}
			}
		}
	})
}

// A driver keeps views of all it puts: beyond the store they are in files on disk, beyond
// that budget it is told, and it goes on when it closes them.
func TestFaultDriverWhoseViewsFillTheStore(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, where := range []string{"beside the node", "in another process"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			if where == "beside the node" {
				_, ctx = harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB})
			} else {
				_, ctx = harness.Connect(t, ctx, harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)}))
			}
			var views []io.Closer
			var full error
			for i := range 16 {
				ref, err := mobula.Put(ctx, harness.Array(4*harness.MiB, float64(i)))
				if err != nil {
					full = err
					break
				}
				v, err := ref.View(ctx)
				if err != nil {
					full = err
					break
				}
				if xs, err := v.Value(); err != nil || !harness.Holds(xs, 4*harness.MiB, float64(i)) {
					t.Errorf("view %d: %d elements, %v", i, len(xs), err)
				}
				views = append(views, v)
			}
			harness.WantErr(t, "all is pinned", full, mobula.ErrStoreFull, "close views", "limit 16777216", "pinned 12582912", "in fallback files 16777216 of 16777216")
			if len(views) != 7 {
				t.Errorf("%d objects of 4 MiB found room in 16 MiB of memory, less the store's index, and 16 MiB of files", len(views))
			}
			harness.Works(t, ctx) // what fits in messages needs no room
			for _, v := range views {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			ref, err := mobula.Put(ctx, harness.Array(12*harness.MiB, 5))
			if err != nil {
				t.Fatalf("after the views are closed: %v", err)
			}
			if xs, err := ref.Get(ctx); err != nil || !harness.Holds(xs, 12*harness.MiB, 5) {
				t.Errorf("after the views are closed: %d elements, %v", len(xs), err)
			}
		})
	}
}

// The memory file system holds less than the store was told to take: what there is of it, but for 64 MiB
// that are left to others, is used, the rest goes to disk, and one object that is larger says so.
func TestFaultShmTooSmall(t *testing.T) {
	if !harness.InMounts(t) {
		return
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	n, ctx := harness.StartNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 128 * harness.MiB, StoreDir: tmpfs(t, "96m"), Keep: true, Processes: true})
	var refs []mobula.Ref[[]float64]
	for i := range 24 {
		ref, err := mobula.Put(ctx, harness.Array(2*harness.MiB, float64(i)))
		if err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		refs = append(refs, ref, harness.Fill.Go(ctx, mobula.V(2*harness.MiB/8), mobula.V(float64(i))))
	}
	for i, ref := range refs {
		if xs, err := ref.Get(ctx); err != nil || !harness.Holds(xs, 2*harness.MiB, float64(i/2)) {
			t.Fatalf("object %d: %d elements, %v", i, len(xs), err)
		}
	}
	_, err := mobula.Put(ctx, harness.Array(48*harness.MiB, 1))
	harness.WantErr(t, "an object larger than the memory", err, mobula.ErrSegmentUnavailable, "50331648 bytes asked", "limit 134217728", "tmpfs")
	harness.Works(t, ctx)
	if s, err := n.StoreStats(ctx); err != nil || s.Spills == 0 || s.Lost != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A store for which there is no memory at all does not start, and says which directory.
func TestFaultNoShmAtAll(t *testing.T) {
	dir := filepath.Join(harness.TempDir(t), "none")
	n, err := node.Start(t.Context(), node.Config{Dir: harness.TempDir(t), StoreBytes: 16 * harness.MiB, StoreDir: dir, Keep: true, Logger: harness.Quiet()})
	if err == nil {
		_ = n.Close(t.Context()) // it is not wanted
	}
	harness.WantErr(t, "no directory for the segment", err, mobula.ErrSegmentUnavailable, dir)
}

func TestFaultViewUsedAfterClose(t *testing.T) {
	harness.BothModes(t, node.Config{CPUs: 1, StoreBytes: 16 * harness.MiB}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		for what, ref := range map[string]mobula.Ref[[]float64]{
			"in shared memory": harness.Fill.Go(ctx, mobula.V(harness.MiB/8), mobula.V(1.0)),
			"in a message":     harness.Fill.Go(ctx, mobula.V(8), mobula.V(1.0)),
		} {
			v, err := ref.View(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			_, valueErr := v.Value()
			_, sizeErr := v.Size()
			for _, err := range []error{valueErr, sizeErr, v.Close()} {
				harness.WantErr(t, what, err, mobula.ErrViewClosed)
			}
			if xs, err := ref.Get(ctx); err != nil || xs[0] != 1 {
				t.Errorf("%s: the object itself: %v", what, err)
			}
		}
	})
}

// Whatever is asked of a runtime that was closed is answered at once; so is what was being waited for.
func TestFaultGetAfterShutdown(t *testing.T) {
	for _, mode := range []string{"embedded", "process", "connected"} {
		t.Run(mode, func(t *testing.T) {
			ctx, cancel := harness.Limit(t)
			defer cancel()
			var c *mobula.Cluster
			var err error
			switch opts := []mobula.StartOption{mobula.WithStore(16 * harness.MiB), mobula.WithDir(harness.TempDir(t)), mobula.WithLogger(harness.Quiet())}; mode {
			case "embedded":
				c, err = mobula.Start(ctx, opts...)
			case "process":
				c, err = mobula.Start(ctx, append(opts, mobula.WithProcesses())...)
			case "connected":
				p := harness.MustLaunch(t, harness.NodeConfig{Dir: harness.TempDir(t), CPUs: 1, Store: 16 * harness.MiB, StoreDir: harness.TempDir(t)})
				c, err = mobula.Connect(ctx, p.Address, mobula.ConnectLogger(harness.Quiet()))
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx = c.Context(ctx)
			small, large := harness.Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)), harness.Fill.Go(ctx, mobula.V(harness.MiB/8), mobula.V(1.0))
			if _, err := large.Get(ctx); err != nil {
				t.Fatal(err)
			}
			pending := harness.Sleepy.Go(ctx, mobula.V(600_000), mobula.V(1))
			waited := make(chan error, 1)
			go func() {
				_, err := pending.Get(ctx)
				waited <- err
			}()
			if err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
			harness.WantErr(t, "a get that waited", <-waited, mobula.ErrShutdown)
			_, getErr := pending.Get(ctx)
			_, largeErr := large.Get(ctx)
			_, viewErr := large.View(ctx)
			_, putErr := mobula.Put(ctx, 1)
			_, callErr := harness.Add.Go(ctx, small, mobula.V(1.0)).Get(ctx)
			_, _, waitErr := mobula.Wait(ctx, []mobula.Ref[int]{pending}, 1)
			_, spawnErr := harness.CounterType.Spawn(ctx, mobula.V(1))
			if err := errors.Join(getErr, largeErr, viewErr, putErr, callErr, waitErr, spawnErr); err == nil {
				t.Error("nothing failed")
			}
			for what, err := range map[string]error{"get": getErr, "get of what was stored": largeErr, "view": viewErr, "put": putErr, "call": callErr, "wait": waitErr, "spawn": spawnErr} {
				harness.WantErr(t, what, err, mobula.ErrShutdown)
			}
		})
	}
}
