package shell

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mobula/remote"
)

// ErrBroken is the end of a connection that the other side, or the network, has ended.
var ErrBroken = errors.New("remote: the connection broke")

// linger is how long the end of a connection waits for what was to be said on it before.
const linger = time.Second

// link is one connection with another node: a goroutine that reads and one that writes.
type link struct {
	id   remote.ConnID
	peer *peer
	conn Conn
	dec  *decoder

	mu     sync.Mutex
	out    []frame   // guarded by mu: to be written; messages are bounded by what the core keeps
	ack    uint64    // guarded by mu: the number to acknowledge next
	acks   bool      // guarded by mu: it is to be written
	ending error     // guarded by mu: the link ends when Hello and Use are written
	writer bool      // guarded by mu: somebody has the writer's role
	spare  []frame   // guarded by mu: the slice that is filled next
	last   time.Time // guarded by mu: when the last write ended
	half   bool      // of who has the role: Finish is to be called first

	// Of who reads: its goroutine, or one that waits for an answer (see Borrow).
	frames  []frame       // have come, and are not handled
	err     error         // why no more come
	stepped chan struct{} // of capacity 1

	now  nowWriter     // conn; nil: it is none
	wake chan struct{} // of capacity 1: there is something to write
	over chan struct{} // closed when the link has ended
	once sync.Once

	handling atomic.Bool   // messages of it are being handled, or wait for their turn
	inside   atomic.Bool   // a frame has come in part
	came     atomic.Uint64 // bytes read
	seen     uint64        // of came, by the hub's ticker
}

func newLink(p *peer, conn Conn, dec *decoder) *link {
	l := &link{
		id: remote.ConnID(p.hub.links.Add(1)), peer: p, conn: conn, dec: dec,
		wake: make(chan struct{}, 1), over: make(chan struct{}), stepped: make(chan struct{}, 1),
	}
	l.now, _ = conn.(nowWriter)
	return l
}

// push has a frame written.
func (l *link) push(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending == nil {
		l.out = append(l.out, f)
	}
}

// acknowledge has a number acknowledged; one that waits to be written is replaced.
func (l *link) acknowledge(number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ack, l.acks = number, true
}

// close ends the link when the other node was told who this one is; it does not wait for that.
func (l *link) close(err error) {
	l.mu.Lock()
	if l.ending == nil {
		l.ending = err
	}
	l.mu.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(linger)) // one that has ended has none
	l.call()
}

// fail ends the link at once, and tells the peer. False: it had ended before, for another reason.
func (l *link) fail(err error) (first bool) {
	l.once.Do(func() {
		first = true
		close(l.over)
		_ = l.conn.Close() // err says more
		l.peer.hub.forget(l)
		l.peer.gate.failed(err)
		l.peer.ref.Deliver(&coreEvent{ev: remote.Closed{Conn: l.id, Err: err}})
	})
	return first
}

// busy tells the peer if the link takes nothing for a while though it lives; the hub's ticker asks. What has come as a whole says nothing of that: if it were
// taken for a sign, the two ends of an idle link would answer each other's signs for ever.
func (l *link) busy() {
	came := l.came.Load()
	if l.handling.Load() || l.inside.Load() && came != l.seen {
		l.peer.ref.Deliver(&coreEvent{ev: remote.Busy{Conn: l.id}})
	}
	l.seen = came
}

// broken is the error of a connection on which a call has failed.
func broken(call string, err error) error { return fmt.Errorf("%w: %s: %w", ErrBroken, call, err) }
