package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// floorTime is the time of a plain program with two goroutines for the same records: the same chunks, sorts and
// merges, and the same bytes written to files and read from them. It keeps in memory what the run did not spill.
func floorTime(ctx context.Context, cfg config, u usage) (float64, error) {
	dir, err := os.MkdirTemp(cfg.spill, "sort-floor-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory
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
	memory   buffers
	toDisk   atomic.Int64 // bytes of this phase still to be written to files
}

// blob is a chunk or range, in memory or in a file.
type blob struct {
	data []byte
	file *os.File
	size int
}

// block is the alignment of direct I/O; large slices of Go have it.
const block = 4096

func roundUp(n int) int { return (n + block - 1) &^ (block - 1) }

// buffers are reused: a first touch of memory costs more than the sort.
type buffers struct{ pool sync.Pool }

func (b *buffers) get(n int) []byte {
	if p, ok := b.pool.Get().(*[]byte); ok && cap(*p) >= roundUp(n) {
		return (*p)[:n]
	}
	return make([]byte, n, max(roundUp(n)+block, 64<<10))
}

func (b *buffers) put(p []byte) { b.pool.Put(&p) }

// read gives a part of the blob, in the blob's memory or in buf.
func (b *blob) read(from, to int, buf []byte) ([]byte, error) {
	if b.file == nil {
		return b.data[from:to], nil
	}
	start := from &^ (block - 1)
	n, err := b.file.ReadAt(buf[:roundUp(to)-start], int64(start))
	if n >= to-start {
		err = nil // the file does not end at a block
	}
	return buf[from-start : to-start], err
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

// keep puts data where the run would have it, and frees the buffer if that is a file.
func (f *floor) keep(name string, data []byte) (blob, error) {
	b := blob{data: data, size: len(data)}
	if f.toDisk.Add(-int64(len(data))) < 0 {
		return b, nil
	}
	path := filepath.Join(f.dir, name)
	// Like the spiller: without the page cache if the file system can.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_DIRECT, 0o600)
	if err != nil {
		file, err = os.Create(path)
	}
	if err != nil {
		return b, err
	}
	b.data, b.file = nil, file
	_, err = file.Write(data[:roundUp(len(data))])
	f.memory.put(data)
	return b, err
}

func (f *floor) split(c int) error {
	first, n := f.plan.chunkAt(c)
	data := f.memory.get(n * recordSize)
	defer f.memory.put(data)
	generate(data, first)
	f.sum.Add(checksum(data))
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	index := s.index(data)
	record := func(i int) []byte { return data[int(index[i].at)*recordSize:][:recordSize] }
	f.cuts[c] = append(cut(n, record, f.bounds), n)
	sorted := f.memory.get(len(data))
	for i := range n {
		copy(sorted[i*recordSize:][:recordSize], record(i))
	}
	var err error
	f.chunks[c], err = f.keep(fmt.Sprintf("chunk-%d", c), sorted)
	return err
}

func (f *floor) merge(r int) error {
	runs, size, room := make([][]byte, len(f.chunks)), 0, 0
	from := make([]int, len(f.chunks))
	for c := range f.chunks {
		if r > 0 {
			from[c] = f.cuts[c][r-1] * recordSize
		}
		n := f.cuts[c][r]*recordSize - from[c]
		size += n
		room += roundUp(n) + 2*block
	}
	in := f.memory.get(room)
	defer f.memory.put(in)
	for c, at := 0, 0; c < len(runs); c++ {
		to := f.cuts[c][r] * recordSize
		var err error
		if runs[c], err = f.chunks[c].read(from[c], to, in[at:]); err != nil {
			return err
		}
		at += roundUp(to-from[c]) + block
	}
	data := f.memory.get(size)
	mergeInto(data, runs)
	var err error
	f.out[r], err = f.keep(fmt.Sprintf("range-%d", r), data)
	return err
}

func (f *floor) verify(r int) error {
	buf := f.memory.get(f.out[r].size + block)
	defer f.memory.put(buf)
	data, err := f.out[r].read(0, f.out[r].size, buf[:cap(buf)])
	if err != nil {
		return err
	}
	s, err := verify(data)
	f.got.Add(s.Sum)
	return err
}
