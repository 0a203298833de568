package conn

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// burst: a message sent so soon after the last write is left to a goroutine, which
// writes it together with those that follow it. A message after a pause is written by
// its sender, without a switch. Measured by BenchmarkPingPong and BenchmarkFlood.
const burst = 5 * time.Microsecond

// directRounds is how often a sender writes what others appended meanwhile before it
// passes the role on.
const directRounds = 2

// Send sends messages, all in one piece and in order. It waits while more than
// Config.SoftBacklog bytes are unwritten. The messages are given up; large values are
// written from where they are. It does not wait for the other side to read.
//
// A message that cannot be sent at all (errs.ErrInvalid: too large, a Meta too long)
// is left out, with those after it; the connection stays usable. Of an Exec that is too
// large the tasks go in several.
func (c *Conn) Send(msgs ...wire.Msg) error { return c.send(context.Background(), false, nil, msgs) }

// SendContext is Send that stops waiting for room when ctx ends; then nothing was sent.
func (c *Conn) SendContext(ctx context.Context, msgs ...wire.Msg) error {
	return c.send(ctx, false, nil, msgs)
}

// TrySend is Send that never waits: with more than Config.HardBacklog bytes unwritten it
// sends nothing and returns errs.ErrBacklog. For actors; the caller keeps what was refused,
// and sends it after AwaitRoom.
func (c *Conn) TrySend(msgs ...wire.Msg) error { return c.send(context.Background(), true, nil, msgs) }

// AwaitRoom waits until no more than Config.SoftBacklog bytes are unwritten; the error is why
// the connection is over.
func (c *Conn) AwaitRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admit(context.Background(), false)
}

// HasRoom tells whether AwaitRoom would not wait.
func (c *Conn) HasRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail != nil || c.closing || c.pending <= c.cfg.SoftBacklog
}

// SendFD is TrySend of one message with a descriptor: the other side gets f in
// the message (wire.FileOf), or from Dial with the Welcome. The caller may close f afterwards.
func (c *Conn) SendFD(m wire.Msg, f *os.File) error {
	if k := m.Kind(); wire.FileOf(m) == nil && k != wire.KindWelcome {
		return errs.New(errs.CodeInvalid, "a %v message carries no descriptor", k)
	}
	f, err := dup(f)
	if err != nil {
		return errs.New(errs.CodeInvalid, "descriptor for a %v message: %v", m.Kind(), err)
	}
	if err := c.send(context.Background(), true, f, []wire.Msg{m}); err != nil {
		_ = f.Close() // the error of the send says more
		return err
	}
	return nil
}

func (c *Conn) send(ctx context.Context, try bool, file *os.File, msgs []wire.Msg) error {
	c.mu.Lock()
	if err := c.admit(ctx, try); err != nil {
		c.mu.Unlock()
		return err
	}
	if c.out == nil {
		c.out = writers.Get().(*wire.FrameWriter)
	}
	c.out.For(&c.opts)
	before := c.out.Size()
	var err error
	for _, m := range msgs {
		if err = c.out.Add(m, file); err != nil {
			break
		}
	}
	c.pending += c.out.Size() - before
	switch {
	case c.writing || c.scheduled || c.out.Size() == 0:
		c.mu.Unlock()
		return err
	case time.Since(epoch).Nanoseconds()-c.lastWrite < burst.Nanoseconds():
		c.scheduled = true
		c.mu.Unlock()
		go c.drain()
		return err
	}
	c.writing = true
	c.mu.Unlock()
	if failed := c.direct(); failed != nil {
		return failed
	}
	return err
}

// admit waits for room. Called with mu held, and returns with it held.
func (c *Conn) admit(ctx context.Context, try bool) error {
	for {
		switch {
		case c.fail != nil:
			return c.fail
		case c.closing:
			return errs.New(errs.CodeShutdown, "the connection is closing")
		case try && c.pending > c.cfg.HardBacklog:
			return errs.New(errs.CodeBacklog, "%d bytes wait for process %d to read, the limit is %d", c.pending, c.peer.PID, c.cfg.HardBacklog)
		case try, c.pending <= c.cfg.SoftBacklog:
			return nil
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room := c.room
		c.mu.Unlock()
		select {
		case <-room:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// writers are shared by all connections: an idle one keeps a small one at most.
var writers = sync.Pool{New: func() any { return wire.NewFrameWriter(spliceFrom) }}

// keepBuffer is the largest buffer that an idle connection keeps, and keepPooled the
// largest that the pool does.
const (
	keepBuffer = 4 << 10
	keepPooled = 256 << 10
)

// shed gives back what an idle connection does not need. Called with mu held.
func (c *Conn) shed() {
	giveBack(c.spare)
	c.spare = nil
	if c.out != nil && c.out.Cap() > keepBuffer {
		giveBack(c.out)
		c.out = nil
	}
}

func giveBack(o *wire.FrameWriter) {
	if o != nil && o.Cap() <= keepPooled {
		o.For(nil)
		writers.Put(o)
	}
}

// spliceFrom is the size from which a byte string is written from where it is: below,
// the copy is cheaper than one more buffer in the system call.
const spliceFrom = 8 << 10

// Flush writes what is pending, as far as the transport takes it, without waiting.
func (c *Conn) Flush() {
	c.mu.Lock()
	if c.writing || !c.scheduled || c.fail != nil {
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	_ = c.direct() // the next send returns it
}

// take makes the pending messages the ones being sent. False: there are none, and the
// writer's role is given back.
func (c *Conn) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == nil || c.out.Size() == 0 || c.fail != nil {
		c.writing = false
		c.shed()
		c.lastWrite = time.Since(epoch).Nanoseconds()
		if c.idle != nil {
			c.finish()
		}
		return false
	}
	c.sending, c.out, c.spare = c.out, c.spare, nil
	c.parts = c.sending.Parts(c.parts[:0])
	c.rest = c.parts
	return true
}

// written ends a batch: its bytes are no longer pending.
func (c *Conn) written() {
	o := c.sending
	n := o.Size()
	discard(o)
	o.Reset()
	clear(c.parts)
	c.sending, c.rest = nil, nil
	c.sentBytes.Add(uint64(n))
	c.mu.Lock()
	c.pending -= n
	if c.fail == nil {
		if c.out == nil {
			c.out = o
		} else {
			c.spare = o
		}
	}
	if c.pending <= c.cfg.SoftBacklog {
		c.wake()
	}
	c.mu.Unlock()
}

// direct writes as the sender, without waiting, and passes the role on if that is not
// enough. The caller has the role.
func (c *Conn) direct() error {
	for range directRounds {
		if !c.take() {
			return nil
		}
		if err := c.try(); err != nil {
			return c.broken(err)
		}
		if len(c.rest) > 0 {
			go c.finishSlow()
			return nil
		}
		c.written()
	}
	go c.drainHeld()
	return nil
}

// drain is the goroutine of a burst.
func (c *Conn) drain() {
	c.mu.Lock()
	c.scheduled = false
	if c.writing { // Flush was faster; it takes all that is there
		c.mu.Unlock()
		return
	}
	c.writing = true
	c.mu.Unlock()
	c.drainHeld()
}

// drainHeld writes until nothing is pending, waiting for the other side where it must.
func (c *Conn) drainHeld() {
	for c.take() {
		if !c.slow() {
			return
		}
	}
}

// finishSlow ends the batch under way, then drains.
func (c *Conn) finishSlow() {
	if c.slow() {
		c.drainHeld()
	}
}

// slow writes the batch under way to its end. It fails the connection when the other
// side takes nothing for Config.WriteTimeout; see Config.Patient.
func (c *Conn) slow() bool {
	for len(c.rest) > 0 {
		if err := c.wait(); err != nil {
			_ = c.broken(err) // the next send returns it
			return false
		}
	}
	c.written()
	return true
}

// broken fails the connection after a write error and gives the role back.
func (c *Conn) broken(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errs.New(errs.CodeDisconnected, "process %d has read nothing for %v", c.peer.PID, c.cfg.WriteTimeout)
	} else {
		err = c.disconnected("write", err)
	}
	discard(c.sending)
	c.sending, c.parts, c.rest = nil, nil, nil
	if c.Gone() {
		c.endWriting(err)
	} else {
		c.Fail(err)
	}
	c.take() // sees the failure: gives the role back
	return c.failure()
}

// try writes what the transport takes; it never waits.
func (c *Conn) try() error {
	for len(c.rest) > 0 {
		n, err := c.t.write(c.rest)
		if err != nil || n == 0 {
			return err
		}
		c.advance(n)
	}
	return nil
}

// wait is try that waits until the transport takes something: for Config.WriteTimeout, and once
// more each time that finds a patient connection's other side alive.
func (c *Conn) wait() error {
	var until time.Time
	for {
		before := c.left()
		if err := c.try(); err != nil || c.left() < before {
			return err
		}
		now := time.Now()
		if until.IsZero() || !now.Before(until) && c.cfg.Patient && c.peer.lives() {
			until = now.Add(c.cfg.WriteTimeout)
		}
		if !now.Before(until) {
			return os.ErrDeadlineExceeded
		}
		c.t.awaitRoom(until.Sub(now))
	}
}

// left is the number of bytes of the batch under way that are not written.
func (c *Conn) left() (n int) {
	for i := range c.rest {
		n += len(c.rest[i].Data)
	}
	return n
}

// advance drops n written bytes from the parts that are left.
func (c *Conn) advance(n int) {
	for n > 0 {
		p := &c.rest[0]
		p.File = nil // went with the first byte
		if n < len(p.Data) {
			p.Data = p.Data[n:]
			return
		}
		n -= len(p.Data)
		c.rest = c.rest[1:]
	}
}
