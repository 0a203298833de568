package wired

import (
	"errors"
	"os"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
	"mobula/wire/conn"
)

// backlog is how many bytes may be encoded and not written, or somewhat more: what waits behind them waits as messages.
const backlog = 1 << 20

// linger is how long an end that is closed waits for the other side to read what was said before.
const linger = time.Second

// atOnce is how many messages are encoded at most before it is seen again whether there is room.
const atOnce = 64

// out is what one end says: in order, and what is ready at once.
type out struct {
	c *conn.Conn

	mu      sync.Mutex
	queue   []wire.Msg // guarded by mu
	spare   []wire.Msg // guarded by mu: memory for queue
	sending bool       // guarded by mu: a goroutine is at it
	closing bool       // guarded by mu: nothing is said any more, and then the connection is closed
	over    bool       // guarded by mu: nobody listens any more

	reuse func(m wire.Msg) // has m used again: it was sent; called with mu held
}

func open(f *os.File, hot, files bool) (*conn.Conn, error) {
	return conn.Over(f, hot, files, conn.Config{SoftBacklog: backlog, Patient: true, Linger: linger})
}

// say queues a message.
func (o *out) say(m wire.Msg) {
	o.mu.Lock()
	o.sayLocked(m)
	o.mu.Unlock()
}

func (o *out) sayLocked(m wire.Msg) {
	if !o.over && !o.closing {
		o.queue = append(o.queue, m)
	}
}

// flush has it written, without waiting.
func (o *out) flush() {
	o.mu.Lock()
	if o.sending || o.over || len(o.queue) == 0 && !o.closing {
		o.mu.Unlock()
		return
	}
	o.sending = true
	o.mu.Unlock()
	o.send()
}

// send writes what is queued, as the one who sends.
func (o *out) send() {
	for {
		o.mu.Lock()
		if o.over || len(o.queue) == 0 {
			closing := o.closing && !o.over
			o.over, o.sending = o.over || closing, false
			o.mu.Unlock()
			if closing {
				go func() { _ = o.c.Close() }() // which waits until it is written, for a while; that it was not nobody asks
			}
			return
		}
		batch := o.queue
		o.queue, o.spare = o.spare[:0], nil
		o.mu.Unlock()
		for rest := batch; len(rest) > 0; {
			n := min(len(rest), atOnce)
			if !o.c.HasRoom() {
				go o.sendSlow(batch, rest)
				return
			}
			if !o.sendSome(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
		o.sent(batch)
	}
}

// sendSlow is send where the other side has to read first.
func (o *out) sendSlow(batch, rest []wire.Msg) {
	for len(rest) > 0 {
		n := min(len(rest), atOnce)
		if !o.sendSome(rest[:n]) { // it waits for room
			return
		}
		rest = rest[n:]
	}
	o.sent(batch)
	o.send()
}

// sendSome sends; false: nobody listens any more.
func (o *out) sendSome(msgs []wire.Msg) bool {
	err := o.c.Send(msgs...)
	if err != nil {
		if errors.Is(err, errs.ErrInvalid) { // the rest would be out of order
			o.c.Fail(err)
		}
		o.end()
	}
	return err == nil
}

// sent gives the memory of a batch back.
func (o *out) sent(batch []wire.Msg) {
	o.mu.Lock()
	for i, m := range batch {
		o.reuse(m)
		batch[i] = nil
	}
	o.spare = batch[:0]
	o.mu.Unlock()
}

// end drops what is queued.
func (o *out) end() {
	o.mu.Lock()
	o.queue, o.spare, o.over, o.sending = nil, nil, true, false
	o.mu.Unlock()
}

// hangUp has the connection closed when all was written.
func (o *out) hangUp() {
	o.mu.Lock()
	o.closing = true
	o.mu.Unlock()
}
