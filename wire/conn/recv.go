package conn

import (
	"errors"

	"mobula/internal/ids"
	"mobula/wire"
)

// A receiver is what a connection knows of what it receives.
type receiver struct {
	wire.FrameReader
	hot *hot // the transport's

	early []wire.Msg // came together with the first message of the handshake
	fail  error      // reported once the messages before it are
	soon  bool       // a read that finds nothing for hotWait returns
}

func (x *receiver) init(c *Conn) {
	x.Limit, x.PID, x.hot = wire.MaxFrame, c.peer.PID, c.t.heat()
}

// release gives back what an ended connection holds.
func (x *receiver) release() {
	x.hot.leave()
	x.Release()
}

// PassOn has reports of a job's tasks come as wire.Encoded. It is called before Recv.
func (c *Conn) PassOn(job ids.JobID) { c.rx.Passing = job }

// Recv returns the next messages: at least one, all that one read brought, in the order
// sent. It waits for them. The slice and the messages are the caller's.
//
// io.EOF: the other side closed between two frames. errs.ErrProtocol: it sent something
// malformed; the messages before that were returned first. The connection should be
// closed after any error.
func (c *Conn) Recv() ([]wire.Msg, error) {
	x := &c.rx
	if batch := x.early; batch != nil {
		x.early = nil
		return batch, nil
	}
	if x.fail != nil {
		return nil, x.fail
	}
	for {
		batch, err := x.Next()
		if err != nil {
			x.fail = c.over(err)
			x.release()
		}
		if len(batch) > 0 {
			x.Shed()
			n := wire.Count(batch)
			x.hot.came(n)
			c.recvMsgs.Add(uint64(n))
			return batch, nil
		}
		if x.fail != nil {
			return nil, x.fail
		}
		n, err := c.t.read(&x.FrameReader, x.soon)
		if errors.Is(err, errNothing) {
			return nil, nil
		}
		if err == nil && n == 0 {
			err = x.Ended()
		}
		if err != nil {
			x.fail = c.over(err)
			x.release()
			return nil, x.fail
		}
		c.recvBytes.Add(uint64(n))
	}
}

// over is the error of a connection of which nothing more is read.
func (c *Conn) over(err error) error {
	err = c.disconnected("read", err)
	if c.failure() != nil {
		c.shut() // a broken pipe has left it open
	}
	return err
}

// recvSoon is Recv that returns nothing when nothing came for hotWait or, of a connection that is
// not hot, when nothing is there.
func (c *Conn) recvSoon() ([]wire.Msg, error) {
	c.rx.soon = true
	batch, err := c.Recv()
	c.rx.soon = false
	return batch, err
}
