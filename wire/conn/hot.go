package conn

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// hot tells whether a connection is read by a system call that waits. Where a conversation
// goes to and fro, what it takes to wake the reader is most of the time: through the poller two
// epoll sets stand between the writer and the thread that reads, and the kernel no longer sees
// that the writer is about to wait itself, and wakes the reader on another, idle processor. A
// thread that waits in ppoll is woken where the writer runs, at once.
//
// A connection becomes hot when a few messages in a row came alone and soon after the one
// before. It cools down when none came for hotWait, or when they come in heaps.
//
// Only a connection of a process that has one to talk over becomes hot: the one that was dialled, and
// in a process that has both the node and a driver those to the workers. Where messages go from
// one connection to another, as in a node on its own, a single thread serves them all
// best, through the poller.
//
// The runtime does not know that such a thread waits for long: it keeps a processor for it, and if
// the thread was the one that looked after the poller, nobody does from then on, until the
// runtime's monitor sees to it, milliseconds later. So one processor of the process' is always
// left to others, and a goroutine that comes to wait on a new thread lets the scheduler run first,
// which wakes another thread for the poller.
type hot struct {
	may   bool // become hot
	on    bool
	heap  bool  // cools down with the next read
	quick int   // waits in a row that were short
	since int64 // when the poller began to wait, nanoseconds since epoch; 0: it did not
	reads uint  // while hot
	tid   int   // of the thread that waited last

	counted atomic.Bool // in hotConns
}

const (
	hotWait  = 4 * time.Millisecond   // how long one system call waits
	hotSoon  = 500 * time.Microsecond // a shorter wait is quick
	hotAfter = 8                      // so many in a row
	hotBatch = 4                      // messages: more at once are a heap
	hotYield = 16                     // reads, after which goroutines that this one woke are let before it
)

// hotConns counts the hot connections of the process.
var hotConns atomic.Int32

// waited learns from a wait through the poller that has brought something. Called with the socket in use.
func (h *hot) waited(s *socket) {
	if h.since == 0 {
		return
	}
	soon := now()-h.since < hotSoon.Nanoseconds()
	h.since = 0
	if !soon {
		h.quick = 0
		return
	}
	if h.quick++; h.quick < hotAfter || !h.may {
		return
	}
	h.quick = 0
	if hotConns.Add(1) >= int32(runtime.GOMAXPROCS(0)) || s.watch(false) != nil {
		hotConns.Add(-1)
		return
	}
	h.counted.Store(true)
	h.on, h.reads, h.tid = true, 0, 0
}

// came learns how many messages a read brought.
func (h *hot) came(n int) {
	if n > hotBatch {
		h.quick, h.heap = 0, h.on
	}
}

// cool lets the poller wait again. Called with the socket in use.
func (h *hot) cool(s *socket) error {
	h.on, h.heap, h.quick = false, false, 0
	h.leave()
	return s.watch(true)
}

// leave takes the connection off the count.
func (h *hot) leave() {
	if h.counted.CompareAndSwap(true, false) {
		hotConns.Add(-1)
	}
}

// turn lets other goroutines run before this one waits in the kernel, if it has to.
func (h *hot) turn() {
	h.reads++
	if h.reads%hotYield != 0 && h.tid == unix.Gettid() {
		return
	}
	runtime.Gosched()
	h.tid = unix.Gettid()
}

// now is the time since epoch in nanoseconds.
func now() int64 { return time.Since(epoch).Nanoseconds() }
