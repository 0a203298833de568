package wired

import (
	"io"
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is the other way that was measured: a pair of rings in memory that both processes map, and two descriptors to wake who waits. Decision 0038 says what came of it.

const (
	ringBytes = 1 << 20
	ringHead  = 192 // of a ring: three words, each in a cache line of its own
)

// ring is one direction: one goroutine writes, one reads.
type ring struct {
	tail, head, sleeps *atomic.Uint64 // bytes written and read; who reads sleeps
	data               []byte
	wake               *os.File
	read               uint64 // of who reads: what it has taken
}

// rings are both directions as one side has them.
type rings struct{ in, out ring }

// openRings maps what memory, with descriptors to wake the two sides, says.
func openRings(memory *os.File, wake [2]*os.File, first bool) (*rings, error) {
	raw, err := unix.Mmap(int(memory.Fd()), 0, 2*(ringHead+ringBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	at := func(b []byte, f *os.File) ring {
		word := func(i int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[64*i])) }
		return ring{tail: word(0), head: word(1), sleeps: word(2), data: b[ringHead : ringHead+ringBytes], wake: f}
	}
	a, b := at(raw, wake[0]), at(raw[ringHead+ringBytes:], wake[1])
	if first {
		return &rings{in: a, out: b}, nil
	}
	return &rings{in: b, out: a}, nil
}

// Write puts all of b into the ring, where there is room, and wakes who reads if that sleeps.
func (r *ring) Write(b []byte) bool {
	tail := r.tail.Load()
	if ringBytes-(tail-r.head.Load()) < uint64(len(b)) {
		return false
	}
	at := tail % ringBytes
	n := copy(r.data[at:], b)
	copy(r.data, b[n:])
	r.tail.Store(tail + uint64(len(b)))
	if r.sleeps.Load() != 0 && r.sleeps.Swap(0) != 0 {
		_, _ = r.wake.Write([]byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	return true
}

// wait waits until there are so many bytes.
func (r *ring) wait(n int) error {
	for r.tail.Load()-r.read < uint64(n) {
		r.sleeps.Store(1)
		if r.tail.Load()-r.read >= uint64(n) {
			r.sleeps.Store(0)
			return nil
		}
		var b [8]byte
		if _, err := r.wake.Read(b[:]); err != nil {
			return err
		}
	}
	return nil
}

// take takes so many bytes, which are there.
func (r *ring) take(b []byte) {
	at := r.read % ringBytes
	n := copy(b, r.data[at:])
	copy(b[n:], r.data)
	r.read += uint64(len(b))
	r.head.Store(r.read)
}

func init() {
	roles["rings"] = func(e *os.File) {
		r, err := openRings(os.NewFile(4, "rings"), [2]*os.File{polled(5), polled(6)}, true)
		if err != nil {
			panic(err)
		}
		go func() { // the socket tells when the other side is gone
			_, _ = io.Copy(io.Discard, bare(e))
			os.Exit(0)
		}()
		b, answer := make([]byte, callBytes), make([]byte, answerBytes)
		for r.in.wait(callBytes) == nil {
			for r.in.tail.Load()-r.in.read >= callBytes {
				if r.in.take(b); b[0] == 0 {
					r.out.Write(answer)
				}
			}
		}
	}
}

// polled is a descriptor that the runtime's poller watches.
func polled(fd int) *os.File {
	_ = unix.SetNonblock(fd, true) // else it would be read in a system call that waits
	return os.NewFile(uintptr(fd), "wake")
}

// withRings starts the other side.
func withRings(b *testing.B) (*rings, int) {
	from, to := made(b)
	fd, err := unix.MemfdCreate("rings", unix.MFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}
	memory := os.NewFile(uintptr(fd), "rings")
	if err := memory.Truncate(2 * (ringHead + ringBytes)); err != nil {
		b.Fatal(err)
	}
	var wake [2]*os.File
	for i := range wake {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			b.Fatal(err)
		}
		wake[i] = polled(fd)
	}
	r, err := openRings(memory, wake, false)
	if err != nil {
		b.Fatal(err)
	}
	pid := child(b, "rings", to, memory, wake[0], wake[1]).Process.Pid
	b.Cleanup(func() { _ = from.Close() })
	return r, pid
}

// BenchmarkRings is a call and its answer over rings, and calls one way.
func BenchmarkRings(b *testing.B) {
	b.Run("ask", func(b *testing.B) {
		r, pid := withRings(b)
		call, answer := make([]byte, callBytes), make([]byte, answerBytes)
		each(b, pid, func() {
			r.out.Write(call)
			if err := r.in.wait(answerBytes); err != nil {
				b.Fatal(err)
			}
			r.in.take(answer)
		})
	})
	b.Run("oneway", func(b *testing.B) {
		r, pid := withRings(b)
		call := make([]byte, callBytes)
		call[0] = 1
		measured(b, pid, func() {
			for b.Loop() {
				for !r.out.Write(call) { // the other side has to read first
					b.StopTimer()
					b.StartTimer()
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
	})
}
