package segment

import (
	"errors"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An extent that is not backed has no memory yet. Its writer brings the memory, in parallel; the store could only
// reserve page after page under the file's lock. The functions in this file report a lack of memory by an error,
// not a signal; no byte is touched until they have returned.

// populate is Populate on two threads, for any length.
func populate(b []byte) error {
	var first firstError
	InParallel(len(b), func(lo, hi int) {
		if !first.is() {
			first.set(populateAll(b[lo:hi]))
		}
	})
	return first.err
}

// populateAll is Populate for any length.
func populateAll(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	for {
		switch err := unix.Madvise(pages(b), unix.MADV_POPULATE_WRITE); err {
		case nil, unix.EINVAL: // the kernel has it since 5.14
			return nil
		case unix.EINTR, unix.EAGAIN:
		default:
			return unavailable("populate %d bytes: %v", len(b), err)
		}
	}
}

type firstError struct {
	mu  sync.Mutex
	err error // guarded by mu until all goroutines are done
}

func (f *firstError) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) is() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err != nil
}

// The part of the userfaultfd interface that fill uses (linux/userfaultfd.h).
const (
	uffdUserModeOnly   = 1
	uffdAPI            = 0xAA
	uffdRegisterMiss   = 1
	ioctlUffdAPI       = 0xc018aa3f
	ioctlUffdRegister  = 0xc020aa00
	ioctlUffdUnregiser = 0x8010aa01
	ioctlUffdCopy      = 0xc028aa03
)

type uffdAPIArg struct{ api, features, ioctls uint64 }

type uffdRange struct{ start, len uint64 }

type uffdRegisterArg struct {
	uffdRange
	mode, ioctls uint64
}

type uffdCopyArg struct {
	dst, src, len, mode uint64
	copied              int64
}

// fill creates dst's missing pages with src's bytes in them, without zeroing, faults or a file lock. Both are
// whole pages. It returns false if it cannot be done, because some of the pages exist. An error means that memory
// is short.
func fill(dst, src []byte) (bool, error) {
	fd, _, e := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|uffdUserModeOnly, 0, 0)
	if e != 0 {
		return false, nil
	}
	defer func() { _ = unix.Close(int(fd)) }() // it has done its work
	api := uffdAPIArg{api: uffdAPI}
	if !ioctl(fd, ioctlUffdAPI, unsafe.Pointer(&api)) {
		return false, nil
	}
	r := uffdRegisterArg{uffdRange: uffdRange{address(dst), uint64(len(dst))}, mode: uffdRegisterMiss}
	if !ioctl(fd, ioctlUffdRegister, unsafe.Pointer(&r)) {
		return false, nil
	}
	defer ioctl(fd, ioctlUffdUnregiser, unsafe.Pointer(&r.uffdRange))
	var first firstError
	InParallel(len(dst), func(lo, hi int) {
		if !first.is() {
			first.set(fillPart(fd, dst[lo:hi], src[lo:hi]))
		}
	})
	runtime.KeepAlive(src)
	if errors.Is(first.err, errPresent) {
		return false, nil
	}
	return true, first.err
}

// errPresent says that a page existed already, from a reservation made ahead. Its neighbours may be missing: a
// write to them while they are registered would block for ever.
var errPresent = errors.New("a page to be made is there already")

func fillPart(fd uintptr, dst, src []byte) error {
	for len(dst) > 0 {
		c := uffdCopyArg{dst: address(dst), src: address(src), len: uint64(len(dst))}
		_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, ioctlUffdCopy, uintptr(unsafe.Pointer(&c)))
		n := max(int(c.copied), 0)
		switch e {
		case 0:
			n = len(dst)
		case unix.EAGAIN, unix.EINTR:
		case unix.EEXIST:
			return errPresent
		default:
			return unavailable("fill %d bytes: %v", len(dst), e)
		}
		dst, src = dst[n:], src[n:]
	}
	return nil
}

func ioctl(fd uintptr, request uintptr, arg unsafe.Pointer) bool {
	_, _, e := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(arg))
	return e == 0
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
