package segment

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/wire"
)

// Sizes for copies.
const (
	parallelFrom = 8 << 20 // smaller copies are done by the caller alone
	copyChunk    = 1 << 20 // the unit that goroutines take in turn
	copiers      = 2       // two saturate the memory of one socket; more would take CPU from tasks
)

// Write copies src to the start of an extent that was granted to the caller; see Map. Large copies run on two
// goroutines. If the extent has no memory and userfaultfd is allowed, its pages are created with src in them,
// which saves zeroing and a fault for each.
func (m *Mapping) Write(e wire.Extent, src []byte) error {
	dst, err := m.Slice(e, true)
	if err != nil {
		return err
	}
	if len(src) > len(dst) {
		return errs.New(errs.CodeInvalid, "%d bytes do not fit an extent of %d", len(src), len(dst))
	}
	if len(dst) >= parallelFrom && !resident(dst) {
		if whole := len(src) &^ (pageSize - 1); e.Off%pageSize == 0 && whole >= parallelFrom {
			done, err := fill(dst[:whole], src[:whole])
			if err != nil {
				return err
			}
			if done {
				dst, src = dst[whole:], src[whole:]
			}
		}
		if err := populate(dst); err != nil {
			return err
		}
	}
	Copy(dst[:len(src)], src)
	return nil
}

// residentStep is the distance of the pages that resident checks: memory is brought in pieces of this size or larger.
const residentStep = 1 << 20

// resident tells whether all of b has memory. An extent that was granted without memory may have some, from a
// reservation made ahead or from a writer that gave up. A page that is reserved but was never used counts as
// missing; to bring it once more does no harm.
func resident(b []byte) bool {
	for at := 0; at < len(b); at += residentStep {
		if !present(b[at:]) {
			return false
		}
	}
	return present(b[len(b)-1:])
}

// present tells whether the first page of b has content.
func present(b []byte) bool {
	p := pages(b[:1])
	var vec [1]byte
	_, _, e := unix.Syscall(unix.SYS_MINCORE, uintptr(address(p)), pageSize, uintptr(unsafe.Pointer(&vec[0])))
	return e != 0 || vec[0]&1 != 0
}

// Copy copies src to dst, which must have the same length, on two goroutines if that is worth it.
func Copy(dst, src []byte) {
	InParallel(len(src), func(lo, hi int) { copy(dst[lo:hi], src[lo:hi]) })
}

// InParallel calls f for consecutive parts of [0, n), from two goroutines if n is large and there
// are two processors. It returns when all of them have.
func InParallel(n int, f func(lo, hi int)) {
	if n < parallelFrom || runtime.GOMAXPROCS(0) < 2 {
		f(0, n)
		return
	}
	var next atomic.Int64
	work := func() {
		for {
			lo := int(next.Add(copyChunk)) - copyChunk
			if lo >= n {
				return
			}
			f(lo, min(lo+copyChunk, n))
		}
	}
	var wg sync.WaitGroup
	for range copiers - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
}
