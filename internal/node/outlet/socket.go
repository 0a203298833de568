package outlet

import (
	"errors"
	"sync"

	"mobula/internal/errs"
	"mobula/wire"
	"mobula/wire/conn"
)

// Socket is the outlet to a client over a connection. What is pushed before it is open,
// which it is when the client has been welcomed, waits, and so does its end.
type Socket struct {
	mu      sync.Mutex
	conn    *conn.Conn // guarded by mu until it is set
	pending []wire.Msg // guarded by mu
	spare   []wire.Msg // guarded by mu
	busy    bool       // guarded by mu
	closed  bool       // guarded by mu
	over    bool       // guarded by mu: the client's process has ended
	broken  error      // guarded by mu: the connection is to fail as soon as it is open; nil: it is not
}

// Open gives it the connection, once: what waits is sent.
func (o *Socket) Open(c *conn.Conn) {
	o.mu.Lock()
	o.conn = c
	over := o.closed
	if o.over {
		c.EndReading()
	}
	if o.broken != nil {
		c.Fail(o.broken)
	}
	o.mu.Unlock()
	o.Flush()
	if over {
		_ = c.Close() // see Close
	}
}

// EndReading has the connection end behind what the client has sent: its process is gone, and a child of that may hold the socket.
func (o *Socket) EndReading() {
	o.mu.Lock()
	o.over = true
	c := o.conn
	o.mu.Unlock()
	if c != nil {
		c.EndReading()
	}
}

// Push is Outlet's.
func (o *Socket) Push(m wire.Msg) {
	o.mu.Lock()
	o.pending = append(o.pending, m)
	o.mu.Unlock()
}

// Flush hands the queue to the connection. Of a client that reads nothing until its backlog
// is full the rest stays here, as the messages that they are, until there is room: nobody waits
// for it but a goroutine of the outlet's own.
func (o *Socket) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.busy || o.conn == nil {
		return
	}
	o.busy = true
	for len(o.pending) > 0 {
		batch := o.pending
		o.pending = o.spare[:0]
		o.mu.Unlock()
		n, err := o.write(batch)
		if errors.Is(err, errs.ErrBacklog) {
			go o.sendRest(batch, n) // it has the role now
			o.mu.Lock()
			o.spare = nil
			return
		}
		if err != nil {
			o.fail(err)
		}
		clear(batch)
		o.mu.Lock()
		o.spare = batch
	}
	o.busy = false
}

// restBatch is how many messages follow each time that the connection has room.
const restBatch = 64

// sendRest sends what is left of a batch as the client reads, and then gives the role back. It
// ends with the connection.
func (o *Socket) sendRest(batch []wire.Msg, sent int) {
	clear(batch[:sent])
	for sent < len(batch) {
		if o.conn.AwaitRoom() != nil {
			break // the connection is over
		}
		some := batch[sent:min(len(batch), sent+restBatch)]
		n, err := o.write(some)
		if err != nil && !errors.Is(err, errs.ErrBacklog) {
			o.fail(err)
			break
		}
		clear(some[:n])
		sent += n
	}
	for _, m := range batch[sent:] {
		drop(m)
	}
	o.mu.Lock()
	o.busy = false
	o.mu.Unlock()
	o.Flush()
}

// write sends a batch, and tells how many of it went; a message with a descriptor goes by itself,
// in its turn, and a receipt when little enough waits before it.
func (o *Socket) write(batch []wire.Msg) (sent int, err error) {
	for i, m := range batch {
		if r, ok := m.(Receipt); ok {
			if err := o.conn.TrySend(batch[sent:i]...); err != nil {
				return sent, err
			}
			if sent = i; !o.conn.HasRoom() {
				return sent, errs.ErrBacklog
			}
			r()
			sent = i + 1
			continue
		}
		f := wire.FileOf(m)
		if f == nil || *f == nil {
			continue
		}
		if err := o.conn.TrySend(batch[sent:i]...); err != nil {
			return sent, err
		}
		err := o.conn.SendFD(m, *f)
		if errors.Is(err, errs.ErrBacklog) {
			return i, err
		}
		drop(m)
		if err != nil {
			return i, err
		}
		sent = i + 1
	}
	if err := o.conn.TrySend(batch[sent:]...); err != nil {
		return sent, err
	}
	return len(batch), nil
}

// drop closes the descriptor of a message that was sent, or will not be: it is a copy of ours.
func drop(m wire.Msg) {
	if f := wire.FileOf(m); f != nil && *f != nil {
		_ = (*f).Close() // nobody uses it
		*f = nil
	}
}

// fail ends the connection after an error of a send, unless it is closing: then what was sent
// before is still being written. What a client said before it closed the connection is still being read.
func (o *Socket) fail(err error) {
	if !errors.Is(err, errs.ErrShutdown) && !o.conn.Gone() {
		o.conn.Fail(err)
	}
}

// Cut ends the connection at once, as one that broke.
func (o *Socket) Cut(err error) {
	o.mu.Lock()
	c := o.conn
	o.broken = err
	o.mu.Unlock()
	if c != nil {
		c.Fail(err)
	}
}

// Close is Outlet's.
func (o *Socket) Close() {
	o.Flush()
	o.mu.Lock()
	o.closed = true
	c := o.conn
	o.mu.Unlock()
	if c != nil {
		_ = c.Close() // the client is done with; what could not be written does not matter
	}
}
