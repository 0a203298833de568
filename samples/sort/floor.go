package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// floorTime is what a plain program of two goroutines takes for the same records: the same
// chunks, sorts and merges, the same bytes written to files and read from them, and nothing else. It
// keeps in memory what the run did not spill.
func floorTime(ctx context.Context, cfg config, u usage) (float64, error) {
	dir, err := os.MkdirTemp(cfg.spill, "sort-floor-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	f := &floor{plan: newPlan(cfg), dir: dir}
	start := time.Now()
	if err := f.run(ctx, u.Spilled); err != nil {
		return 0, fmt.Errorf("floor: %w", err)
	}
	return time.Since(start).Seconds(), nil
}

type floor struct {
	plan     plan
	dir      string
	bounds   []Key // between ranges
	chunks   []blob
	cuts     [][]int // of each chunk, in bytes
	out      []blob
	sum, got atomic.Uint64
	toDisk   atomic.Int64 // bytes of this phase still to be written to files
}

// blob is a chunk or range, in memory or in a file.
type blob struct {
	data []byte
	file *os.File
	size int
}

func (b *blob) read(from, to int) ([]byte, error) {
	if b.file == nil {
		return b.data[from:to], nil
	}
	out := make([]byte, to-from)
	_, err := b.file.ReadAt(out, int64(from))
	return out, err
}

func (f *floor) run(ctx context.Context, spilled int64) error {
	p := f.plan
	keys, err := sampleTask(ctx, p.records, sampleSize)
	if err != nil {
		return err
	}
	sortKeys(keys)
	f.bounds = quantiles(keys, p.ranges)
	f.chunks, f.cuts, f.out = make([]blob, p.chunks), make([][]int, p.chunks), make([]blob, p.ranges)
	defer f.close()
	f.toDisk.Store(spilled / 2)
	if err := f.each(ctx, p.chunks, f.split); err != nil {
		return err
	}
	f.toDisk.Store(spilled - spilled/2)
	if err := f.each(ctx, p.ranges, f.merge); err != nil {
		return err
	}
	if err := f.each(ctx, p.ranges, f.verify); err != nil {
		return err
	}
	if f.sum.Load() != f.got.Load() {
		return fmt.Errorf("checksum %x, want %x", f.got.Load(), f.sum.Load())
	}
	return nil
}

func (f *floor) close() {
	for _, list := range [][]blob{f.chunks, f.out} {
		for _, b := range list {
			if b.file != nil {
				_ = b.file.Close() // it was read to the end, or the run failed anyway
			}
		}
	}
}

// each runs do for 0 to n-1 on two goroutines.
func (f *floor) each(ctx context.Context, n int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, 2)
	var work sync.WaitGroup
	for g := range errs {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[g] == nil; i = int(next.Add(1)) - 1 {
				if errs[g] = ctx.Err(); errs[g] == nil {
					errs[g] = do(i)
				}
			}
		})
	}
	work.Wait()
	if errs[0] != nil {
		return errs[0]
	}
	return errs[1]
}

// keep puts data where the run would have had it. It takes data over.
func (f *floor) keep(name string, data []byte) (blob, error) {
	b := blob{data: data, size: len(data)}
	if f.toDisk.Add(-int64(len(data))) < 0 {
		return b, nil
	}
	file, err := os.Create(filepath.Join(f.dir, name))
	if err != nil {
		return b, err
	}
	b.data, b.file = nil, file
	_, err = file.Write(data)
	return b, err
}

func (f *floor) split(c int) error {
	first, n := f.plan.chunkAt(c)
	data := make([]byte, n*recordSize)
	generate(data, first)
	f.sum.Add(checksum(data))
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	index := s.index(data)
	record := func(i int) []byte { return data[int(index[i].at)*recordSize:][:recordSize] }
	f.cuts[c] = append(cut(n, record, f.bounds), n)
	sorted := make([]byte, len(data))
	for i := range n {
		copy(sorted[i*recordSize:][:recordSize], record(i))
	}
	var err error
	f.chunks[c], err = f.keep(fmt.Sprintf("chunk-%d", c), sorted)
	return err
}

func (f *floor) merge(r int) error {
	runs, size := make([][]byte, len(f.chunks)), 0
	for c := range f.chunks {
		from := 0
		if r > 0 {
			from = f.cuts[c][r-1]
		}
		var err error
		if runs[c], err = f.chunks[c].read(from*recordSize, f.cuts[c][r]*recordSize); err != nil {
			return err
		}
		size += len(runs[c])
	}
	data := make([]byte, size)
	mergeInto(data, runs)
	var err error
	f.out[r], err = f.keep(fmt.Sprintf("range-%d", r), data)
	return err
}

func (f *floor) verify(r int) error {
	data, err := f.out[r].read(0, f.out[r].size)
	if err != nil {
		return err
	}
	s, err := verifyTask(context.Background(), data)
	f.got.Add(s.Sum)
	return err
}
