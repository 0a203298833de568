package floor

import (
	"context"
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

// Disk says what to write and read, and how.
type Disk struct {
	Dir       string // on the disk to measure; the files are removed
	Bytes     int64  // in all
	FileBytes int64  // of each file; the last may be shorter
	Direct    bool   // O_DIRECT; else through the page cache
	Cold      bool   // reads: evict the files before each sample. Direct reads are always cold
	Drop      bool   // buffered: write back and drop pages behind the I/O, inside the time, as a spiller has to
	Chunk     int    // bytes a system call; 0: 4 MiB
	Threads   int    // system calls at a time, over all files; 0: 4
	Repeats   int    // samples; 0: 3
}

func (d Disk) withDefaults() (Disk, error) {
	if d.Chunk == 0 {
		d.Chunk = 4 << 20
	}
	if d.Threads == 0 {
		d.Threads = 4
	}
	if d.Repeats == 0 {
		d.Repeats = 3
	}
	err := positive("Bytes", d.Bytes, "FileBytes", d.FileBytes, "Chunk", int64(d.Chunk), "Threads", int64(d.Threads), "Repeats", int64(d.Repeats))
	if err == nil && d.Direct && (d.Bytes%4096 != 0 || d.FileBytes%4096 != 0 || d.Chunk%4096 != 0) {
		err = fmt.Errorf("floor: Bytes %d, FileBytes %d and Chunk %d must be multiples of 4096 for direct I/O", d.Bytes, d.FileBytes, d.Chunk)
	}
	return d, err
}

// DiskWrite writes the files anew for each sample, GiB/s. Blocks are reserved as a spiller does (fallocate), inside
// the time. A buffered sample without Drop ends when the bytes are in the page cache.
func DiskWrite(ctx context.Context, d Disk) ([]float64, error) {
	return d.measure(func(r *diskRun) (time.Duration, error) { return r.write(ctx) })
}

// DiskRead writes the files once and reads them for each sample, GiB/s.
func DiskRead(ctx context.Context, d Disk) ([]float64, error) {
	first := true
	return d.measure(func(r *diskRun) (time.Duration, error) {
		if first {
			if _, err := r.write(ctx); err != nil {
				return 0, err
			}
			first = false
		}
		if d.Cold || d.Direct {
			if err := r.each(Evict); err != nil {
				return 0, err
			}
		} else if err := r.warm(ctx); err != nil {
			return 0, err
		}
		return r.read(ctx)
	})
}

func (d Disk) measure(once func(*diskRun) (time.Duration, error)) (_ []float64, err error) {
	if d, err = d.withDefaults(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(d.Dir, "floor-")
	if err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &diskRun{Disk: d, dir: dir}
	for range d.Threads {
		b, err := anonymous(int64(d.Chunk))
		if err != nil {
			return nil, err
		}
		defer syscall.Munmap(b)
		r.bufs = append(r.bufs, b)
	}
	var out []float64
	for range d.Repeats {
		t, err := once(r)
		if err != nil {
			return nil, err
		}
		out = append(out, rate(d.Bytes, t))
	}
	return out, nil
}

// diskRun is one measurement's files.
type diskRun struct {
	Disk
	dir  string
	bufs [][]byte
}

func (r *diskRun) files() int { return int((r.Bytes + r.FileBytes - 1) / r.FileBytes) }

func (r *diskRun) path(i int) string { return filepath.Join(r.dir, fmt.Sprint(i)) }

func (r *diskRun) size(i int) int64 { return min(r.FileBytes, r.Bytes-int64(i)*r.FileBytes) }

func (r *diskRun) each(f func(path string) error) error {
	for i := range r.files() {
		if err := f(r.path(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *diskRun) write(ctx context.Context) (time.Duration, error) {
	if err := r.each(func(p string) error {
		if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("floor: %w", err)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	return r.run(ctx, os.O_WRONLY|os.O_CREATE|os.O_EXCL, func(f *os.File, buf []byte, off int64) error {
		if _, err := f.WriteAt(buf, off); err != nil {
			return err
		}
		if r.Drop && !r.Direct {
			const wait = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
			_ = unix.SyncFileRange(int(f.Fd()), off, int64(len(buf)), wait)
			_ = unix.Fadvise(int(f.Fd()), off, int64(len(buf)), unix.FADV_DONTNEED)
		}
		return nil
	})
}

func (r *diskRun) read(ctx context.Context) (time.Duration, error) {
	return r.run(ctx, os.O_RDONLY, func(f *os.File, buf []byte, off int64) error {
		_, err := f.ReadAt(buf, off)
		if r.Drop && !r.Direct {
			_ = unix.Fadvise(int(f.Fd()), off, int64(len(buf)), unix.FADV_DONTNEED)
		}
		return err
	})
}

func (r *diskRun) warm(ctx context.Context) error {
	again := *r
	again.Drop = false
	_, err := again.read(ctx)
	return err
}

// run opens the files and has the threads take chunk after chunk.
func (r *diskRun) run(ctx context.Context, flags int, io func(f *os.File, buf []byte, off int64) error) (_ time.Duration, err error) {
	if r.Direct {
		flags |= unix.O_DIRECT
	}
	begun := time.Now()
	type job struct {
		f   *os.File
		off int64
		n   int64
	}
	var jobs []job
	for i := range r.files() {
		f, err := os.OpenFile(r.path(i), flags, 0o600)
		if err != nil {
			return 0, fmt.Errorf("floor: %w", err)
		}
		defer f.Close()
		if flags&os.O_CREATE != 0 {
			if err := unix.Fallocate(int(f.Fd()), 0, 0, r.size(i)); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
				return 0, fmt.Errorf("floor: reserve %d bytes of %s: %w", r.size(i), f.Name(), err)
			}
		}
		for off := int64(0); off < r.size(i); off += int64(r.Chunk) {
			jobs = append(jobs, job{f, off, min(int64(r.Chunk), r.size(i)-off)})
		}
	}
	var next atomic.Int64
	var mu sync.Mutex
	parallel(r.Threads, func(part int) {
		for ctx.Err() == nil {
			n := int(next.Add(1)) - 1
			if n >= len(jobs) {
				return
			}
			j := jobs[n]
			if e := io(j.f, r.bufs[part][:j.n], j.off); e != nil {
				mu.Lock()
				err = errors.Join(err, fmt.Errorf("floor: %w", e))
				mu.Unlock()
				return
			}
		}
	})
	return time.Since(begun), errors.Join(err, context.Cause(ctx))
}

// Evict writes a file back and takes it out of the page cache.
func Evict(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("floor: evict: %w", err)
	}
	defer f.Close()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("floor: write back %s: %w", path, err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("floor: evict %s: %w", path, err)
	}
	return nil
}
