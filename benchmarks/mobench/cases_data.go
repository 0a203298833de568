package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
	"mobula/benchmarks/floor"
)

// broadcast has many tasks sum one array, which lies in memory once.
func broadcast(ctx context.Context, b *bench) (*report, error) {
	n := int(b.castBytes / 8)
	return b.in(ctx, setup{store: b.castBytes + b.castBytes/4}, func(cl *cluster) (*report, error) {
		buf, err := mobula.Create[float64](cl.ctx, n)
		if err != nil {
			return nil, err
		}
		for i := range buf.Slice() {
			buf.Slice()[i] = float64(i % 8)
		}
		want := floor.SumFloat64(buf.Slice())
		array, err := buf.Put()
		if err != nil {
			return nil, err
		}
		once := func(ctx context.Context) (float64, error) {
			begun := time.Now()
			refs := make([]mobula.Ref[float64], b.castTasks)
			for i := range refs {
				refs[i] = sum.Go(ctx, array)
			}
			cl.did(b.castTasks)
			got, err := mobula.GetAll(ctx, refs)
			t := time.Since(begun).Seconds()
			if err != nil {
				return 0, err
			}
			for i, v := range got {
				if v != want {
					return 0, fmt.Errorf("task %d: sum %g, want %g", i, v, want)
				}
			}
			return t, nil
		}
		// Memory is looked at in a run of its own: looking costs time.
		mem := sample(cl.ctx, 100*time.Millisecond)
		_, err = once(cl.ctx)
		peak := mem.stop()
		if err != nil {
			return nil, err
		}
		bare, s, err := b.besideSums(cl, array, want, once)
		if err != nil {
			return nil, err
		}
		r := &report{unit: "s", samples: s, floor: median(bare)}
		r.add("floor_is", "two threads of the driver, each summing half of the object as often")
		r.addSamples("summing", bare)
		r.add("peak_mib", float64(peak.total())/mib)
		r.add("array_mib", float64(b.castBytes)/mib)
		if peak.segment > b.castBytes+b.castBytes/4 {
			r.failed = fmt.Sprintf("the segment has %d MiB for an array of %d MiB: it is there more than once", peak.segment/mib, b.castBytes/mib)
		}
		return r, nil
	})
}

// besideSums measures by turns: two threads of this process that add up the array as often as the tasks do, and the tasks.
func (b *bench) besideSums(cl *cluster, array mobula.Ref[[]float64], want float64, once func(context.Context) (float64, error)) (bare, s []float64, err error) {
	v, err := array.View(cl.ctx)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	values, err := v.Value()
	if err != nil {
		return nil, nil, err
	}
	s, err = b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
		t, got, err := floor.SumShares(values, 2, b.castTasks)
		if err != nil {
			return 0, err
		}
		if got != want {
			return 0, fmt.Errorf("two threads: sum %g, want %g", got, want)
		}
		bare = append(bare, t)
		return once(ctx)
	})
	return bare, s, err
}

// spilling is one run of the spill case.
type spilling struct {
	*bench
	cl   *cluster
	dir  string
	refs []mobula.Ref[[]float64]

	wrote     int64 // bytes, in the time that is measured
	fileBytes int64
}

// spill writes several times what the store holds, and reads it back, cold. The value is the rate of puts once the store is
// full: for each byte that comes one has to go to disk. read is the rate at which objects come back, a few asked for at
// once, with nothing else in the store.
func spill(ctx context.Context, b *bench) (_ *report, err error) {
	dir, remove, err := b.temp()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	var back, warm, single, tasks []float64
	run := &spilling{bench: b, dir: dir}
	s, err := b.measureFresh(ctx, setup{store: b.spillStore, spill: dir}, func(cl *cluster) (float64, error) {
		run.cl = cl
		v, err := run.write(cl.ctx)
		if err != nil {
			return 0, err
		}
		for _, pass := range []struct {
			into *[]float64
			cold bool
			read func(ctx context.Context) error
		}{{&back, true, run.readMany}, {&warm, false, run.readMany}, {&single, true, run.readEach}, {&tasks, true, run.readInTasks}} {
			rate, err := run.timed(cl.ctx, pass.cold, pass.read)
			if err != nil {
				return 0, fmt.Errorf("read back: %w", err)
			}
			*pass.into = append(*pass.into, rate)
		}
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	return run.report(ctx, s, back, warm, single, tasks)
}

// write fills the store half as often again as it holds, then measures.
func (s *spilling) write(ctx context.Context) (float64, error) {
	values := make([]float64, s.spillObject/8)
	for i := range values {
		values[i] = float64(i)
	}
	s.refs = nil
	fit := int(s.spillStore / s.spillObject)
	full := fit * 3 / 2
	var begun time.Time
	for i := range s.spillObjects {
		if i == full {
			begun = time.Now()
		}
		values[0] = float64(i)
		ref, err := mobula.Put(ctx, values)
		if err != nil {
			return 0, err
		}
		s.refs = append(s.refs, ref)
	}
	took := time.Since(begun)
	s.wrote = s.spillObject * int64(s.spillObjects-full)
	st, err := s.cl.store(ctx)
	if err != nil {
		return 0, err
	}
	if want := uint64(s.spillObject) * uint64(s.spillObjects-fit); st.SpilledEver < want {
		return 0, fmt.Errorf("%d bytes were spilled, at least %d must be to hold %d objects of %d in a store of %d", st.SpilledEver, want, s.spillObjects, s.spillObject, s.spillStore)
	}
	s.fileBytes = fileSize(s.dir, s.spillObject)
	// What is still in memory goes: the rest is read with nothing to write.
	for _, r := range s.refs[s.spillObjects-fit:] {
		r.Release()
	}
	s.refs = s.refs[:s.spillObjects-fit]
	return float64(s.wrote) / gib / took.Seconds(), nil
}

// timed gives the GiB/s at which the objects are read.
func (s *spilling) timed(ctx context.Context, cold bool, read func(ctx context.Context) error) (float64, error) {
	if cold {
		if err := evictAll(s.dir); err != nil {
			return 0, err
		}
	}
	before, err := s.cl.store(ctx)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := read(ctx); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	after, err := s.cl.store(ctx)
	if err != nil {
		return 0, err
	}
	return float64(after.RestoredEver-before.RestoredEver) / gib / took.Seconds(), nil
}

// together is how many objects are asked for at once: a quarter of the store.
func (s *spilling) together() int { return max(int(s.spillStore/s.spillObject)/4, 1) }

func (s *spilling) readMany(ctx context.Context) error {
	for from := 0; from < len(s.refs); from += s.together() {
		part := s.refs[from:min(from+s.together(), len(s.refs))]
		views, err := mobula.ViewAll(ctx, part)
		if err != nil {
			return err
		}
		for i, v := range views {
			if err := errors.Join(begins(v, float64(from+i)), v.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *spilling) readEach(ctx context.Context) error {
	for i, r := range s.refs {
		v, err := r.View(ctx)
		if err != nil {
			return err
		}
		if err := errors.Join(begins(v, float64(i)), v.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (s *spilling) readInTasks(ctx context.Context) error {
	out := make([]mobula.Ref[float64], len(s.refs))
	for i, r := range s.refs {
		out[i] = first.Go(ctx, r)
	}
	s.cl.did(len(out))
	got, err := mobula.GetAll(ctx, out)
	if err != nil {
		return err
	}
	for i, v := range got {
		if v != float64(i) {
			return fmt.Errorf("object %d begins with %g", i, v)
		}
	}
	return nil
}

func begins(v *mobula.View[[]float64], want float64) error {
	data, err := v.Value()
	if err == nil && data[0] != want {
		err = fmt.Errorf("object %g begins with %g", want, data[0])
	}
	return err
}

// report measures the disk with the same bytes and files.
func (s *spilling) report(ctx context.Context, samples, back, warm, single, tasks []float64) (*report, error) {
	d := floor.Disk{Dir: s.dir, FileBytes: aligned(s.fileBytes), Direct: true, Repeats: min(s.repeats, 3)}
	d.Bytes = aligned(s.wrote)
	w, err := floor.DiskWrite(ctx, d)
	if err != nil {
		return nil, err
	}
	d.Bytes, d.Cold = aligned(s.spillObject*int64(len(s.refs))), true
	c, err := floor.DiskRead(ctx, d)
	if err != nil {
		return nil, err
	}
	d.Direct, d.Cold = false, false
	h, err := floor.DiskRead(ctx, d)
	if err != nil {
		return nil, err
	}
	r := &report{unit: "GiB/s", samples: samples, floor: median(w)}
	r.add("floor_is", "direct I/O, 4 threads")
	r.addSamples("read", back)
	r.add("read_floor", median(c))
	r.add("read_ratio", median(back)/median(c))
	r.add("read_warm", median(warm))
	r.add("read_warm_floor", median(h))
	r.add("read_one_by_one", median(single))
	r.add("read_in_tasks", median(tasks))
	r.add("file_mib", float64(s.fileBytes)/mib)
	return r, nil
}

func aligned(n int64) int64 { return max((n+4095)&^4095, 4096) }
