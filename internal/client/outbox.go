package client

import (
	"sync"
	"sync/atomic"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// outbox is the only way to the node. Its lock gives the messages on the wire the order in which the client
// changes its tables, where that matters: releases before a new hold.
type outbox struct {
	*base
	handles *handles
	up      outboxUp

	req      atomic.Uint64 // number of the last question
	joining  atomic.Bool   // a reconnect is under way
	sessions atomic.Uint32 // reconnects that found the node

	mu   sync.Mutex
	port Port        // guarded by mu; nil while the connection is down
	one  [1]wire.Msg // guarded by mu: scratch
	cork cork

	waiting bool   // guarded by mu: the messages being sent are those of a wait
	turn    func() // guarded by mu: the node's work that it leaves to the waiter

	// Only used if the client can reconnect.
	replay  bool
	credit  *credit
	unacked unacked    // guarded by mu
	later   []wire.Msg // guarded by mu: sent while the connection was down
}

// outboxUp is told that the connection is gone.
type outboxUp interface {
	Disconnected(from Port, cause error)
}

// send hands one message to the port.
func (o *outbox) send(m wire.Msg) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.one[0] = m
	err := o.sendLocked(o.one[:])
	o.one[0] = nil
	return err
}

// Send hands messages to the node in order. It is how a worker's executor reports.
func (o *outbox) Send(msgs ...wire.Msg) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sendLocked(msgs)
}

func (o *outbox) sendLocked(msgs []wire.Msg) error {
	if o.handles.releaser.waiting.Load() >= flushAt {
		o.flushLocked()
	}
	return o.writeLocked(msgs)
}

// sendWait sends the questions of a goroutine that is about to wait, and does the node's work on them if the node
// leaves it to us.
func (o *outbox) sendWait(msgs []wire.Msg) error {
	o.mu.Lock()
	o.cork.waits()
	o.waiting = true
	err := o.sendLocked(msgs)
	turn := o.turn
	o.waiting, o.turn = false, nil
	o.mu.Unlock()
	if turn != nil {
		turn()
	}
	return err
}

// writeLocked hands messages to the port, after a submit that was kept back.
func (o *outbox) writeLocked(msgs []wire.Msg) error {
	h := &o.cork
	if len(h.msgs) == 0 {
		return o.putLocked(msgs)
	}
	all := append(h.msgs, msgs...)
	h.msgs = nil
	err := o.putLocked(all)
	clear(all)
	h.msgs = all[:0]
	return err
}

func (o *outbox) putLocked(msgs []wire.Msg) error {
	if len(msgs) == 0 {
		return nil
	}
	if o.replay {
		for _, m := range msgs {
			o.unacked.add(m, o.credit)
		}
	}
	if o.port == nil {
		if !o.replay {
			return o.failure()
		}
		for _, m := range msgs {
			if !redeclared(m) {
				o.later = append(o.later, m)
			}
		}
		return nil
	}
	if err := o.toPort(msgs); err != nil {
		go o.up.Disconnected(o.port, err)
		o.port = nil
		if o.replay {
			for _, m := range msgs {
				if !redeclared(m) {
					o.later = append(o.later, m)
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

// redeclared tells whether m need not be kept while the connection is down: its content is in the client's tables
// and is sent again, or m is in the replay queue.
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

func (o *outbox) ask(gets []wire.Get) error {
	switch len(gets) {
	case 0:
		return nil
	case 1:
		return o.sendWait([]wire.Msg{&gets[0]})
	}
	msgs := make([]wire.Msg, len(gets))
	for i := range gets {
		msgs[i] = &gets[i]
	}
	return o.sendWait(msgs)
}

// Flush sends the releases and unpins that wait in the queue.
func (o *outbox) Flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
	_ = o.writeLocked(nil) // sends a submit that was kept back; a dead connection is reported elsewhere
}

// flushLocked empties the queue. The outbox's lock is held, so a new hold on one of these objects is sent after
// the release.
func (o *outbox) flushLocked() {
	r := &o.handles.releaser
	r.mu.Lock()
	handles, pins := r.handles, r.pins
	r.handles, r.pins = r.spareH[:0], r.spareP[:0]
	r.spareH, r.spareP = nil, nil
	r.waiting.Add(-int32(len(handles) + len(pins)))
	r.armed = false
	r.mu.Unlock()

	if len(pins) > 0 {
		r.unpins = r.unpins[:0]
		for _, p := range pins {
			if n := o.handles.table.dropPin(p); n > 0 {
				r.unpins = append(r.unpins, &wire.Unpin{ID: p.id, N: n})
			}
		}
		_ = o.writeLocked(r.unpins) // a dead connection has no pins
		clear(r.unpins)
	}
	if len(handles) > 0 {
		gone := make([]ids.ObjectID, 0, len(handles))
		for _, h := range handles {
			if o.handles.table.drop(h) {
				gone = append(gone, h.id)
			}
		}
		if len(gone) > 0 {
			_ = o.writeLocked([]wire.Msg{&wire.Release{IDs: gone}}) // a dead connection has no handles
		}
	}
	clear(handles)
	clear(pins)
	r.spareH, r.spareP = handles, pins
}
