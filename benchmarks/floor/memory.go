package floor

import (
	"context"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Memory says how much memory a measurement goes over.
type Memory struct {
	Bytes   int64 // 0: 1 GiB
	Threads int   // 0: 1
	Repeats int   // samples; 0: 5
}

func (m Memory) withDefaults() (Memory, error) {
	if m.Bytes == 0 {
		m.Bytes = GiB
	}
	if m.Threads == 0 {
		m.Threads = 1
	}
	if m.Repeats == 0 {
		m.Repeats = 5
	}
	return m, positive("Bytes", m.Bytes, "Threads", int64(m.Threads), "Repeats", int64(m.Repeats))
}

// Memcpy copies Bytes from one warm place to another, GiB/s of bytes copied (each is read and written). One copy
// is made before the first sample.
func Memcpy(ctx context.Context, m Memory) ([]float64, error) {
	m, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	src, err := anonymous(m.Bytes)
	if err != nil {
		return nil, err
	}
	defer syscall.Munmap(src)
	dst, err := anonymous(m.Bytes)
	if err != nil {
		return nil, err
	}
	defer syscall.Munmap(dst)
	return repeat(ctx, m, func() float64 {
		return rate(m.Bytes, parallel(m.Threads, func(part int) {
			from, to := share(m.Bytes, 4096, part, m.Threads)
			copy(dst[from:to], src[from:to])
		}))
	})
}

// SumShares splits values among the threads; each adds up its share, passes times. It gives the time that took, in seconds,
// and the sum of values. (Threads that each go over all of it at one pace would read half of it from each other's cache.)
func SumShares(values []float64, threads, passes int) (seconds, sum float64, err error) {
	if err := positive("threads", int64(threads), "passes", int64(passes)); err != nil {
		return 0, 0, err
	}
	sums := make([]float64, threads)
	took := parallel(threads, func(part int) {
		from, to := share(int64(len(values)), 8, part, threads)
		for range passes {
			sums[part] += SumFloat64(values[from:to])
		}
	})
	for _, s := range sums {
		sum += s / float64(passes)
	}
	return took.Seconds(), sum, nil
}

// SumFloat64 adds with eight accumulators, so that no addition waits for the one before it.
func SumFloat64(v []float64) float64 {
	var a, b, c, d, e, f, g, h float64
	for len(v) >= 8 {
		w := v[:8:8]
		a, b, c, d = a+w[0], b+w[1], c+w[2], d+w[3]
		e, f, g, h = e+w[4], f+w[5], g+w[6], h+w[7]
		v = v[8:]
	}
	for _, x := range v {
		a += x
	}
	return a + b + c + d + e + f + g + h
}

// repeat makes the samples, after one that does not count.
func repeat(ctx context.Context, m Memory, once func() float64) ([]float64, error) {
	once()
	out := make([]float64, 0, m.Repeats)
	for range m.Repeats {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		out = append(out, once())
	}
	return out, nil
}

// FirstTouch writes Bytes of a new memfd through a shared mapping, GiB/s; each sample has a file of its own.
// reserve has the kernel allocate the pages first (fallocate), outside the time that is measured.
func FirstTouch(ctx context.Context, m Memory, reserve bool) ([]float64, error) {
	m, err := m.withDefaults()
	if err != nil {
		return nil, err
	}
	src, err := anonymous(1 << 20)
	if err != nil {
		return nil, err
	}
	defer syscall.Munmap(src)
	out := make([]float64, 0, m.Repeats)
	for range m.Repeats {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		r, err := touch(m, src, reserve)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func touch(m Memory, src []byte, reserve bool) (float64, error) {
	mem, err := shared(m.Bytes, reserve)
	if err != nil {
		return 0, err
	}
	defer unix.Munmap(mem)
	return rate(m.Bytes, parallel(m.Threads, func(part int) {
		from, to := share(m.Bytes, 4096, part, m.Threads)
		for at := from; at < to; at += int64(len(src)) {
			copy(mem[at:to], src)
		}
	})), nil
}

// shared maps a new memfd that nobody has touched. reserve has the kernel allocate its pages.
func shared(bytes int64, reserve bool) ([]byte, error) {
	fd, err := unix.MemfdCreate("floor", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("floor: memfd: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, bytes); err != nil {
		return nil, fmt.Errorf("floor: size memfd to %d: %w", bytes, err)
	}
	if reserve {
		if err := unix.Fallocate(fd, 0, 0, bytes); err != nil {
			return nil, fmt.Errorf("floor: reserve %d bytes: %w", bytes, err)
		}
	}
	mem, err := unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("floor: map %d bytes: %w", bytes, err)
	}
	return mem, nil
}
