package floor

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Sorting says what to sort.
type Sorting struct {
	Dir     string // on the disk to use; the files are removed
	Records int64  // of 100 bytes
	Memory  int64  // bytes of records a goroutine sorts at a time; 0: 64 MiB
	Threads int    // goroutines; 0: 2
	Direct  bool   // O_DIRECT; else through the page cache
	Output  bool   // write the result to disk; else it is checked and dropped
	Repeats int    // samples; 0: 1
}

// SortSample is one sort.
type SortSample struct {
	Total, Runs, Merge float64 // seconds: all; making, sorting and writing runs; reading and merging them
	Written, Read      int64   // bytes of files
}

const (
	sortBlock = 4096
	sortChunk = 4 << 20
)

// Sort is an external sort without a framework: each goroutine makes records, sorts them in memory and writes a run;
// then each takes ranges of keys, reads its part of every run and merges. Every record is written and read
// once, and written once more with Output. The order and the number of records are checked on the way.
func Sort(ctx context.Context, s Sorting) (_ []SortSample, err error) {
	if s.Memory == 0 {
		s.Memory = 64 << 20
	}
	if s.Threads == 0 {
		s.Threads = 2
	}
	if s.Repeats == 0 {
		s.Repeats = 1
	}
	if err := positive("Records", s.Records, "Memory", s.Memory/RecordBytes, "Threads", int64(s.Threads), "Repeats", int64(s.Repeats)); err != nil {
		return nil, err
	}
	var out []SortSample
	for range s.Repeats {
		sample, err := s.once(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, sample)
	}
	return out, nil
}

// sorting is one sort under way.
type sorting struct {
	Sorting
	dir           string
	perRun, runs  int64
	parts         int       // ranges of keys
	bounds        [][]int64 // of each run: where each range starts, in records
	written, read atomic.Int64

	mu  sync.Mutex
	err error
}

func (s Sorting) once(ctx context.Context) (_ SortSample, err error) {
	dir, err := os.MkdirTemp(s.Dir, "floor-sort-")
	if err != nil {
		return SortSample{}, fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w := &sorting{Sorting: s, dir: dir, perRun: s.Memory / RecordBytes}
	w.runs = (s.Records + w.perRun - 1) / w.perRun
	w.parts = max(int(w.runs), s.Threads)
	w.bounds = make([][]int64, w.runs)
	runs := w.each(ctx, w.runs, w.makeRuns)
	var merged atomic.Int64
	merge := w.each(ctx, int64(w.parts), func(next func() (int64, bool)) error { return w.merge(next, &merged) })
	if w.err == nil && merged.Load() != s.Records {
		w.err = fmt.Errorf("floor: %d of %d records came out of the sort", merged.Load(), s.Records)
	}
	return SortSample{
		Total: (runs + merge).Seconds(), Runs: runs.Seconds(), Merge: merge.Seconds(), Written: w.written.Load(), Read: w.read.Load(),
	}, w.err
}

// each has the goroutines take numbers below n until they are used up or something fails.
func (w *sorting) each(ctx context.Context, n int64, work func(next func() (int64, bool)) error) time.Duration {
	var last atomic.Int64
	next := func() (int64, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.err == nil {
			w.err = context.Cause(ctx)
		}
		i := last.Add(1) - 1
		return i, i < n && w.err == nil
	}
	return parallel(w.Threads, func(int) {
		if err := work(next); err != nil {
			w.mu.Lock()
			w.err = errors.Join(w.err, err)
			w.mu.Unlock()
		}
	})
}

func (w *sorting) makeRuns(next func() (int64, bool)) error {
	size := roundUp(w.perRun * RecordBytes)
	raw, err := fresh(size)
	if err != nil {
		return err
	}
	defer syscall.Munmap(raw)
	sorted, err := fresh(size)
	if err != nil {
		return err
	}
	defer syscall.Munmap(sorted)
	var sorter Sorter
	for i, ok := next(); ok; i, ok = next() {
		first := i * w.perRun
		n := min(w.perRun, w.Records-first) * RecordBytes
		Generate(raw[:n], first)
		sorter.Sort(sorted[:n], raw[:n])
		w.bounds[i] = w.cut(sorted[:n])
		if err := w.save(fmt.Sprintf("run-%d", i), sorted[:roundUp(n)]); err != nil {
			return err
		}
	}
	return nil
}

// cut finds where each range of keys starts in a sorted run.
func (w *sorting) cut(run []byte) []int64 {
	out := make([]int64, w.parts+1)
	n := int64(len(run)) / RecordBytes
	at := int64(0)
	for p := 1; p < w.parts; p++ {
		limit := uint64(p) * (^uint64(0)/uint64(w.parts) + 1)
		hi := n
		for at < hi {
			if mid := (at + hi) / 2; binary.BigEndian.Uint64(run[mid*RecordBytes:]) < limit {
				at = mid + 1
			} else {
				hi = mid
			}
		}
		out[p] = at
	}
	out[w.parts] = n
	return out
}

// merge takes ranges of keys.
func (w *sorting) merge(next func() (int64, bool), merged *atomic.Int64) error {
	out, err := fresh(sortChunk + sortBlock)
	if err != nil {
		return err
	}
	defer syscall.Munmap(out)
	most := int64(sortBlock)
	for p := range w.parts {
		most = max(most, w.partBytes(p))
	}
	mem, err := fresh(most)
	if err != nil {
		return err
	}
	defer syscall.Munmap(mem)
	for p, ok := next(); ok; p, ok = next() {
		n, err := w.mergePart(int(p), mem, out)
		if err != nil {
			return err
		}
		merged.Add(n)
	}
	return nil
}

// roundUp makes whole blocks.
func roundUp(n int64) int64 { return (n + sortBlock - 1) &^ (sortBlock - 1) }

func (w *sorting) open(name string, flags int) (*os.File, error) {
	if w.Direct {
		flags |= unix.O_DIRECT
	}
	f, err := os.OpenFile(filepath.Join(w.dir, name), flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	return f, nil
}

func (w *sorting) save(name string, p []byte) error {
	f, err := w.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(len(p))); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("floor: reserve %d bytes of %s: %w", len(p), name, err)
	}
	for off := 0; off < len(p); off += sortChunk {
		if _, err := f.WriteAt(p[off:min(off+sortChunk, len(p))], int64(off)); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
	}
	w.written.Add(int64(len(p)))
	return nil
}

// partBytes is what a range of keys takes in memory: of each run whole blocks.
func (w *sorting) partBytes(part int) (total int64) {
	for _, b := range w.bounds {
		total += roundUp((b[part+1]-b[part])*RecordBytes) + 2*sortBlock
	}
	return total
}

// mergePart reads one range of keys of every run and merges it.
func (w *sorting) mergePart(part int, mem, out []byte) (records int64, err error) {
	var heap merger
	at := int64(0)
	for run, b := range w.bounds {
		from, to := b[part]*RecordBytes, b[part+1]*RecordBytes
		if from == to {
			continue
		}
		low := from &^ (sortBlock - 1)
		p := mem[at : at+roundUp(to)-low]
		at += int64(len(p))
		if err := w.load(fmt.Sprintf("run-%d", run), p, low); err != nil {
			return 0, err
		}
		heap.add(p[from-low : to-low])
	}
	var sink *os.File
	if w.Output {
		if sink, err = w.open(fmt.Sprintf("out-%d", part), os.O_WRONLY|os.O_CREATE|os.O_EXCL); err != nil {
			return 0, err
		}
		defer sink.Close()
	}
	var last [KeyBytes]byte
	used, off := 0, int64(0)
	flush := func(n int) error {
		if sink != nil {
			if _, err := sink.WriteAt(out[:n], off); err != nil {
				return fmt.Errorf("floor: %w", err)
			}
			w.written.Add(int64(n))
		}
		off += int64(n)
		used = copy(out, out[n:max(used, n)])
		return nil
	}
	for r := heap.next(); r != nil; r = heap.next() {
		if bytes.Compare(r[:KeyBytes], last[:]) < 0 {
			return 0, fmt.Errorf("floor: range %d is out of order after %d records", part, records)
		}
		copy(last[:], r)
		records++
		used += copy(out[used:], r)
		if used >= sortChunk {
			if err := flush(sortChunk); err != nil {
				return 0, err
			}
		}
	}
	if used > 0 {
		err = flush(int(roundUp(int64(used))))
	}
	return records, err
}

func (w *sorting) load(name string, p []byte, off int64) error {
	f, err := w.open(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	for at := 0; at < len(p); at += sortChunk {
		if _, err := f.ReadAt(p[at:min(at+sortChunk, len(p))], off+int64(at)); err != nil {
			return fmt.Errorf("floor: %w", err)
		}
	}
	w.read.Add(int64(len(p)))
	return nil
}
