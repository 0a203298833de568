package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"mobula"
)

// small is the size of put-small and get-small.
const small = 1 * kib

// putSmall puts values and keeps their references; with_release is with each given up again. The time ends when the
// node has taken the last one: a task that has it as its argument is done.
func putSmall(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		value := bytes.Repeat([]byte{7}, small)
		once := func(ctx context.Context, release bool) (float64, error) {
			refs := make([]mobula.Ref[[]byte], b.puts)
			begun := time.Now()
			for i := range refs {
				var err error
				if refs[i], err = mobula.Put(ctx, value); err != nil {
					return 0, err
				}
				if release && i < len(refs)-1 {
					refs[i].Release()
				}
			}
			cl.did(1)
			n, err := bytesOf.Go(ctx, refs[len(refs)-1]).Get(ctx)
			if err != nil || n != small {
				return 0, fmt.Errorf("the last put has %d bytes, %w", n, err)
			}
			rate := perSecond(b.puts, begun)
			for _, r := range refs {
				r.Release()
			}
			return rate, cl.settle(ctx)
		}
		if _, err := once(cl.ctx, false); err != nil {
			return nil, err
		}
		var released []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			v, err := once(ctx, true)
			if err != nil {
				return 0, err
			}
			released = append(released, v)
			return once(ctx, false)
		})
		r := &report{unit: "puts/s", samples: s}
		r.addSamples("with_release", released)
		return r, err
	})
}

// getSmall gets the driver's own puts, one by one; at_once is with one call, results of tasks' results.
func getSmall(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		puts := make([]mobula.Ref[[]byte], b.puts)
		for i := range puts {
			var err error
			if puts[i], err = mobula.Put(cl.ctx, bytes.Repeat([]byte{byte(i)}, small)); err != nil {
				return nil, err
			}
		}
		var atOnce, results []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			begun := time.Now()
			got, err := mobula.GetAll(ctx, puts)
			if err != nil {
				return 0, err
			}
			atOnce = append(atOnce, perSecond(len(puts), begun))
			for i, v := range got {
				if len(v) != small || v[small-1] != byte(i) {
					return 0, fmt.Errorf("object %d has %d bytes", i, len(v))
				}
			}
			rate, err := getEach(ctx, puts)
			if err != nil {
				return 0, err
			}
			made := make([]mobula.Ref[[]byte], max(b.puts/10, 1))
			for i := range made {
				made[i] = smallBlob.Go(ctx, mobula.V(small), mobula.V(i))
			}
			cl.did(len(made))
			if _, _, err := mobula.Wait(ctx, made, len(made)); err != nil {
				return 0, err
			}
			v, err := getEach(ctx, made)
			results = append(results, v)
			return rate, err
		})
		r := &report{unit: "gets/s", samples: s}
		r.addSamples("at_once", atOnce)
		r.addSamples("results", results)
		return r, err
	})
}

var smallBlob = mobula.Register2("mobench/small-blob", func(_ context.Context, n, mark int) ([]byte, error) {
	return bytes.Repeat([]byte{byte(mark)}, n), nil
})

// getEach gets references one after another.
func getEach(ctx context.Context, refs []mobula.Ref[[]byte]) (float64, error) {
	begun := time.Now()
	for i, r := range refs {
		v, err := r.Get(ctx)
		if err != nil || len(v) != small || v[0] != byte(i) {
			return 0, fmt.Errorf("object %d has %d bytes, %w", i, len(v), err)
		}
	}
	return perSecond(len(refs), begun), nil
}

// putLarge puts an array into a store that was used before; first is the first put after a start. How
// fast memory is copied varies from minute to minute, so the floor is measured after each run.
func putLarge(ctx context.Context, b *bench) (*report, error) {
	touching, err := b.touchFloor(ctx)
	if err != nil {
		return nil, err
	}
	array := bytes.Repeat([]byte{largeMark}, int(b.large))
	var first, copying []float64
	s, err := b.measureFresh(ctx, setup{store: 2 * b.large}, func(cl *cluster) (reused float64, err error) {
		for range 2 {
			begun := time.Now()
			ref, err := mobula.Put(cl.ctx, array)
			if err != nil {
				return 0, err
			}
			v := float64(b.large) / gib / time.Since(begun).Seconds()
			if reused == 0 {
				first = append(first, v)
			}
			reused = v
			ref.Release()
			if err := cl.empty(cl.ctx); err != nil {
				return 0, err
			}
		}
		f, err := b.memcpyFloor(cl.ctx)
		copying = append(copying, f)
		return reused, err
	})
	if err != nil {
		return nil, err
	}
	r := &report{unit: "GiB/s", samples: s, floor: median(copying)}
	r.add("floor_is", "memcpy, better of 1 and 2 threads")
	r.addSamples("first", first)
	r.add("first_floor", touching)
	r.add("first_ratio", median(first)/touching)
	return r, nil
}

// getLargeCase times the first view of an array in a worker process that has never seen it.
func getLargeCase(ctx context.Context, b *bench) (*report, error) {
	array := bytes.Repeat([]byte{largeMark}, int(b.large))
	var touch []float64
	var allocated, anonymous int64
	s, err := b.measureFresh(ctx, setup{store: 2 * b.large}, func(cl *cluster) (float64, error) {
		ref, err := mobula.Put(cl.ctx, array)
		if err != nil {
			return 0, err
		}
		cl.did(1)
		got, err := getLarge.Go(cl.ctx, mobula.V(box{ref})).Get(cl.ctx)
		if err != nil {
			return 0, err
		}
		if got.Bytes != len(array) {
			return 0, fmt.Errorf("the view has %d bytes, want %d", got.Bytes, len(array))
		}
		touch = append(touch, got.Touch*1e3)
		allocated, anonymous = max(allocated, got.Allocated), max(anonymous, got.Anonymous)
		return got.Seconds * 1e6, nil
	})
	if err != nil {
		return nil, err
	}
	r := &report{unit: "us", samples: s}
	r.add("allocated_kib", float64(allocated)/kib)
	r.add("anonymous_kib", float64(anonymous)/kib)
	r.add("touch_pages_ms", median(touch))
	if copied := max(allocated, anonymous); copied > b.large/2 {
		r.failed = fmt.Sprintf("the worker allocated %d bytes to view an array of %d: it was copied", copied, b.large)
	}
	return r, nil
}
