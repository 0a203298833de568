package e2e

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
	"mobula/internal/node"
)

const mib = 1 << 20

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

// array is so many bytes of v.
func array(bytes int, v float64) []float64 {
	xs := make([]float64, bytes/8)
	for i := range xs {
		xs[i] = v
	}
	return xs
}

// holds tells whether xs is array(bytes, v).
func holds(xs []float64, bytes int, v float64) bool {
	for _, x := range xs {
		if x != v {
			return false
		}
	}
	return len(xs) == bytes/8
}

func TestFaultObjectLargerThanTheStore(t *testing.T) {
	bothModes(t, node.Config{CPUs: 1, StoreBytes: 16 * mib}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		held, err := mobula.Put(ctx, array(4*mib, 1))
		if err != nil {
			t.Fatal(err)
		}
		v, err := held.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		figures := []string{"16777224 bytes asked", "limit 16777216", "held 4194304", "pinned 4194304"}
		_, err = mobula.Put(ctx, array(16*mib+8, 1))
		wantErr(t, "a put", err, mobula.ErrObjectTooLarge, figures...)
		_, err = mobula.Create[float64](ctx, 2*mib+1)
		wantErr(t, "a buffer", err, mobula.ErrObjectTooLarge, figures...)
		_, err = fill.Go(ctx, mobula.V(2*mib+1), mobula.V(1.0)).Get(ctx)
		wantErr(t, "a result", err, mobula.ErrObjectTooLarge, figures...)
		_, err = sum.Go(ctx, mobula.V(array(16*mib+8, 1))).Get(ctx)
		wantErr(t, "an argument", err, mobula.ErrObjectTooLarge, figures...)
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if s, err := sum.Go(ctx, held).Get(ctx); err != nil || s != 4*mib/8 {
			t.Errorf("the object beside it: %v, %v", s, err)
		}
	})
}

// The arguments of two tasks take 70 % of the store, their results 80 %: neither can go on
// without the other's room.
func TestFaultTwoTasksThatNeedEachOthersRoom(t *testing.T) {
	const store = 40 * mib
	bothModes(t, node.Config{CPUs: 2, StoreBytes: store}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		const args, result = store * 34 / 100 / 8 * 8, store * 40 / 100 / 8 * 8 // both round up to 64 KiB
		for round := range 3 {
			dir := tempDir(t)
			var refs []mobula.Ref[[]float64]
			for i := range 2 {
				arg, err := mobula.Put(ctx, array(args, float64(i+1)))
				if err != nil {
					t.Fatal(err)
				}
				refs = append(refs, crowd.Go(ctx, arg, mobula.V(result/8), mobula.V(2), mobula.V(dir)))
			}
			for i, r := range refs {
				if xs, err := r.Get(ctx); err != nil || !holds(xs, result, float64(i+1)) {
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
			ctx, cancel := limit(t)
			defer cancel()
			if where == "beside the node" {
				_, ctx = startNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 16 * mib})
			} else {
				_, ctx = connect(t, ctx, mustLaunch(t, nodeConfig{Dir: tempDir(t), CPUs: 1, Store: 16 * mib, StoreDir: tempDir(t)}))
			}
			var views []io.Closer
			var full error
			for i := range 16 {
				ref, err := mobula.Put(ctx, array(4*mib, float64(i)))
				if err != nil {
					full = err
					break
				}
				v, err := ref.View(ctx)
				if err != nil {
					full = err
					break
				}
				if xs, err := v.Value(); err != nil || !holds(xs, 4*mib, float64(i)) {
					t.Errorf("view %d: %d elements, %v", i, len(xs), err)
				}
				views = append(views, v)
			}
			wantErr(t, "all is pinned", full, mobula.ErrStoreFull, "close views", "limit 16777216", "pinned 12582912", "in fallback files 16777216 of 16777216")
			if len(views) != 7 {
				t.Errorf("%d objects of 4 MiB found room in 16 MiB of memory, less the store's index, and 16 MiB of files", len(views))
			}
			works(t, ctx) // what fits in messages needs no room
			for _, v := range views {
				if err := v.Close(); err != nil {
					t.Error(err)
				}
			}
			ref, err := mobula.Put(ctx, array(12*mib, 5))
			if err != nil {
				t.Fatalf("after the views are closed: %v", err)
			}
			if xs, err := ref.Get(ctx); err != nil || !holds(xs, 12*mib, 5) {
				t.Errorf("after the views are closed: %d elements, %v", len(xs), err)
			}
		})
	}
}

// The memory file system holds less than the store was told to take: what there is of it, but for 64 MiB
// that are left to others, is used, the rest goes to disk, and one object that is larger says so.
func TestFaultShmTooSmall(t *testing.T) {
	if !inMounts(t) {
		return
	}
	ctx, cancel := limit(t)
	defer cancel()
	n, ctx := startNode(t, ctx, node.Config{CPUs: 1, StoreBytes: 128 * mib, StoreDir: tmpfs(t, "96m"), Keep: true, Processes: true})
	var refs []mobula.Ref[[]float64]
	for i := range 24 {
		ref, err := mobula.Put(ctx, array(2*mib, float64(i)))
		if err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		refs = append(refs, ref, fill.Go(ctx, mobula.V(2*mib/8), mobula.V(float64(i))))
	}
	for i, ref := range refs {
		if xs, err := ref.Get(ctx); err != nil || !holds(xs, 2*mib, float64(i/2)) {
			t.Fatalf("object %d: %d elements, %v", i, len(xs), err)
		}
	}
	_, err := mobula.Put(ctx, array(48*mib, 1))
	wantErr(t, "an object larger than the memory", err, mobula.ErrSegmentUnavailable, "50331648 bytes asked", "limit 134217728", "tmpfs")
	works(t, ctx)
	if s, err := n.StoreStats(ctx); err != nil || s.Spills == 0 || s.Lost != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A store for which there is no memory at all does not start, and says which directory.
func TestFaultNoShmAtAll(t *testing.T) {
	dir := filepath.Join(tempDir(t), "none")
	n, err := node.Start(t.Context(), node.Config{Dir: tempDir(t), StoreBytes: 16 * mib, StoreDir: dir, Keep: true, Logger: quiet()})
	if err == nil {
		_ = n.Close(t.Context()) // it is not wanted
	}
	wantErr(t, "no directory for the segment", err, mobula.ErrSegmentUnavailable, dir)
}

func TestFaultViewUsedAfterClose(t *testing.T) {
	bothModes(t, node.Config{CPUs: 1, StoreBytes: 16 * mib}, func(t *testing.T, ctx context.Context, _ *node.Node) {
		for what, ref := range map[string]mobula.Ref[[]float64]{
			"in shared memory": fill.Go(ctx, mobula.V(mib/8), mobula.V(1.0)),
			"in a message":     fill.Go(ctx, mobula.V(8), mobula.V(1.0)),
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
				wantErr(t, what, err, mobula.ErrViewClosed)
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
			ctx, cancel := limit(t)
			defer cancel()
			var c *mobula.Cluster
			var err error
			switch opts := []mobula.StartOption{mobula.WithStore(16 * mib), mobula.WithDir(tempDir(t)), mobula.WithLogger(quiet())}; mode {
			case "embedded":
				c, err = mobula.Start(ctx, opts...)
			case "process":
				c, err = mobula.Start(ctx, append(opts, mobula.WithProcesses())...)
			case "connected":
				p := mustLaunch(t, nodeConfig{Dir: tempDir(t), CPUs: 1, Store: 16 * mib, StoreDir: tempDir(t)})
				c, err = mobula.Connect(ctx, p.address, mobula.ConnectLogger(quiet()))
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx = c.Context(ctx)
			small, large := add.Go(ctx, mobula.V(1.0), mobula.V(2.0)), fill.Go(ctx, mobula.V(mib/8), mobula.V(1.0))
			if _, err := large.Get(ctx); err != nil {
				t.Fatal(err)
			}
			pending := sleepy.Go(ctx, mobula.V(600_000), mobula.V(1))
			waited := make(chan error, 1)
			go func() {
				_, err := pending.Get(ctx)
				waited <- err
			}()
			if err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
			wantErr(t, "a get that waited", <-waited, mobula.ErrShutdown)
			_, getErr := pending.Get(ctx)
			_, largeErr := large.Get(ctx)
			_, viewErr := large.View(ctx)
			_, putErr := mobula.Put(ctx, 1)
			_, callErr := add.Go(ctx, small, mobula.V(1.0)).Get(ctx)
			_, _, waitErr := mobula.Wait(ctx, []mobula.Ref[int]{pending}, 1)
			_, spawnErr := counterType.Spawn(ctx, mobula.V(1))
			if err := errors.Join(getErr, largeErr, viewErr, putErr, callErr, waitErr, spawnErr); err == nil {
				t.Error("nothing failed")
			}
			for what, err := range map[string]error{"get": getErr, "get of what was stored": largeErr, "view": viewErr, "put": putErr, "call": callErr, "wait": waitErr, "spawn": spawnErr} {
				wantErr(t, what, err, mobula.ErrShutdown)
			}
		})
	}
}
