package client

import (
	"sync"

	"mobula/internal/errs"
	"mobula/wire"
)

// outbox is the one way out. Its lock makes the order in which the client changes its
// tables the order on the wire, where that matters: releases before a new hold.
type outbox struct {
	mu   sync.Mutex
	port Port        // guarded by mu; nil while the connection is down
	one  [1]wire.Msg // guarded by mu: scratch
	hold hold

	waiting bool   // guarded by mu: what is sent now is a wait
	turn    func() // guarded by mu: the node's work that it leaves to the waiter

	// Only where the client can reconnect.
	replay  bool
	unacked unacked    // guarded by mu
	later   []wire.Msg // guarded by mu: sent while the connection was down
}

// send hands one message to the port.
func (c *Client) send(m wire.Msg) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.one[0] = m
	err := c.sendLocked(c.out.one[:])
	c.out.one[0] = nil
	return err
}

// Send hands messages to the node in order. It is how a worker's executor reports.
func (c *Client) Send(msgs ...wire.Msg) error {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return c.sendLocked(msgs)
}

func (c *Client) sendLocked(msgs []wire.Msg) error {
	if c.rel.waiting.Load() >= flushAt {
		c.flushLocked()
	}
	return c.writeLocked(msgs)
}

// sendWait sends the questions of somebody who is about to wait, and does the node's work
// on them where the node leaves it to us.
func (c *Client) sendWait(msgs []wire.Msg) error {
	c.out.mu.Lock()
	c.out.hold.waits()
	c.out.waiting = true
	err := c.sendLocked(msgs)
	turn := c.out.turn
	c.out.waiting, c.out.turn = false, nil
	c.out.mu.Unlock()
	if turn != nil {
		turn()
	}
	return err
}

// writeLocked hands messages to the port, after what was kept back.
func (c *Client) writeLocked(msgs []wire.Msg) error {
	h := &c.out.hold
	if len(h.msgs) == 0 {
		return c.putLocked(msgs)
	}
	all := append(h.msgs, msgs...)
	h.msgs = nil
	err := c.putLocked(all)
	clear(all)
	h.msgs = all[:0]
	return err
}

func (c *Client) putLocked(msgs []wire.Msg) error {
	if len(msgs) == 0 {
		return nil
	}
	if c.out.replay {
		for _, m := range msgs {
			c.out.unacked.add(m)
		}
	}
	if c.out.port == nil {
		if !c.out.replay {
			return c.failure()
		}
		for _, m := range msgs {
			if !redeclared(m) {
				c.out.later = append(c.out.later, m)
			}
		}
		return nil
	}
	if err := c.out.toPort(msgs); err != nil {
		go c.Disconnected(c.out.port, err)
		c.out.port = nil
		if c.out.replay {
			for _, m := range msgs {
				if !redeclared(m) {
					c.out.later = append(c.out.later, m)
				}
			}
			return nil
		}
		return gone(err)
	}
	return nil
}

func (o *outbox) toPort(msgs []wire.Msg) error {
	if p, ok := o.port.(TurnPort); ok && o.waiting {
		turn, err := p.SendTurn(msgs...)
		if turn != nil {
			o.turn = turn
		}
		return err
	}
	return o.port.Send(msgs...)
}

// redeclared tells whether m need not be kept while the connection is down: what it
// says is in the client's tables and is told again, or it is in the replay queue.
func redeclared(m wire.Msg) bool {
	switch m.Kind() {
	case wire.KindSubmit, wire.KindPutValue, wire.KindSeal, // the replay queue
		wire.KindGet, wire.KindUnget, wire.KindAddRef, wire.KindRelease, wire.KindStreamNext, wire.KindWatchActor, // the owner's holdings
		wire.KindUnpin,                    // the store's holdings
		wire.KindCreate, wire.KindRequest, // unanswered: asked again
		wire.KindHoldings:
		return true
	}
	return false
}

// gone is the error of operations that end with the connection.
func gone(cause error) error {
	e := errs.New(errs.CodeOwnerDied, "the connection to the node is gone: %v", cause)
	e.Cause = []*errs.Error{errs.New(errs.CodeDisconnected, "the node's process ended or closed the connection")}
	if w := errs.From(cause); w != nil {
		e.Cause[0] = w
	}
	return e
}
