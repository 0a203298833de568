package floor

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"
)

// GiB is a gibibyte in bytes.
const GiB = 1 << 30

// Quantile is the q-quantile of samples (0 the smallest, 0.5 the median, 1 the largest), interpolated; NaN
// without samples. The samples keep their order.
func Quantile(samples []float64, q float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	s := slices.Clone(samples)
	slices.Sort(s)
	at := min(max(q, 0), 1) * float64(len(s)-1)
	i := int(at)
	if i == len(s)-1 {
		return s[i]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

// rate is GiB/s.
func rate(bytes int64, d time.Duration) float64 { return float64(bytes) / GiB / d.Seconds() }

// share is the part-th of parts cuts of n, in units of unit; the last takes the rest.
func share(n, unit int64, part, parts int) (from, to int64) {
	each := n / int64(parts) / unit * unit
	from = each * int64(part)
	to = from + each
	if part == parts-1 {
		to = n
	}
	return from, to
}

// parallel runs f on threads goroutines at once and returns the time from the first start to the last end.
func parallel(threads int, f func(part int)) time.Duration {
	var wg sync.WaitGroup
	begun := time.Now()
	for part := range threads {
		wg.Go(func() { f(part) })
	}
	wg.Wait()
	return time.Since(begun)
}

func positive(params ...any) error {
	for i := 0; i < len(params); i += 2 {
		if n, ok := params[i+1].(int64); !ok || n < 1 {
			return fmt.Errorf("floor: %v is %v, want 1 or more", params[i], params[i+1])
		}
	}
	return nil
}

// fresh is memory outside the garbage collector's heap, not touched.
func fresh(bytes int64) ([]byte, error) {
	m, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("floor: map %d bytes: %w", bytes, err)
	}
	return m, nil
}

// anonymous is fresh memory with something in it.
func anonymous(bytes int64) ([]byte, error) {
	m, err := fresh(bytes)
	if err != nil {
		return nil, err
	}
	for i := range min(len(m), period) {
		m[i] = pattern(i)
	}
	for n := period; n < len(m); n *= 2 {
		copy(m[n:], m[:n])
	}
	return m, nil
}

// period of what anonymous memory has in it: a prime, so that no two pages are alike.
const period = 4093

// pattern is the byte at a place of anonymous memory.
func pattern(at int) byte { return byte(at % period * 31) }
