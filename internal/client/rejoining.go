package client

import (
	"mobula/internal/errs"
	"mobula/wire"
)

// Session is a connection that was opened again.
type Session struct {
	Port    Port
	Welcome *wire.Welcome
	Memory  Memory
	// Serve reads the connection to its end. The client starts it once the session is in use: what
	// the node asks first, a Resync, is answered on the same connection.
	Serve func()
}

// rejoining reconnects to a node that was gone, and tells it everything that the other parts hold.
type rejoining struct {
	*base
	clock        *clock
	memory       *memory
	handles      *handles
	outbox       *outbox
	credit       *credit
	puts         *puts
	streams      *streams
	actorWatches *actorWatches
	requests     *requests
	followed     *followed
	straight     *straight
	gets         *gets
}

// Disconnected tells the client that a connection is gone and why. The transport calls
// it when its reader ends; nil stands for the connection in use, and one that has been
// replaced already is no news. Without Config.Reconnect every pending and later operation
// fails with ErrOwnerDied (or with the node's own reason, where it gave one); with it,
// they wait for the next connection.
func (re *rejoining) Disconnected(from Port, cause error) {
	re.outbox.mu.Lock()
	port := re.outbox.port
	if port != nil && from != nil && port != from {
		re.outbox.mu.Unlock()
		return
	}
	re.outbox.port = nil
	re.outbox.mu.Unlock()
	if port != nil {
		_ = port.Close() // the connection is dead; this ends its reader
	}
	if re.cfg.Reconnect == nil {
		re.kill(asGone(cause))
		return
	}
	if re.outbox.joining.Swap(true) {
		return
	}
	if !re.start(func() { re.rejoin(cause) }) {
		re.outbox.joining.Store(false)
	}
}

func asGone(cause error) error {
	if e, ok := cause.(*errs.Error); ok && e.Code != errs.CodeUnknown {
		return e
	}
	if cause == nil {
		cause = errs.ErrShutdown
	}
	return gone(cause)
}

func (re *rejoining) rejoin(cause error) {
	s, err := re.cfg.Reconnect(re.life, cause)
	if err != nil {
		re.kill(asGone(err))
		re.outbox.joining.Store(false)
		return
	}
	if s.Memory != nil {
		re.memory.of.Store(&s.Memory)
	}
	if s.Welcome != nil {
		re.clock.set(s.Welcome)
	}
	re.outbox.mu.Lock()
	defer re.outbox.mu.Unlock()
	re.outbox.sessions.Add(1)
	re.outbox.joining.Store(false)
	if re.Err() != nil {
		_ = s.Port.Close() // closed meanwhile
		return
	}
	re.outbox.port = s.Port
	for _, m := range re.outbox.cork.msgs {
		re.outbox.unacked.add(m, re.credit)
	}
	re.outbox.cork.msgs = nil
	re.credit.owe(re.outbox.unacked.bytes) // before the first grant is served
	if s.Serve != nil {
		go s.Serve()
	}
	re.replayLocked()
}

// replayLocked repeats everything that the node may not know: holdings first, then the last messages, which may
// not have arrived, then those that were never sent.
func (re *rejoining) replayLocked() {
	re.declareLocked(wire.ComponentOwner, 0)
	re.declareLocked(wire.ComponentStore, 0)
	if re.outbox.port == nil { // it is gone again: the next connection gets all of it
		return
	}
	again := re.outbox.unacked.list()
	later := re.outbox.later
	re.outbox.later = nil
	for _, batch := range [][]wire.Msg{again, later, re.getsLocked()} {
		if len(batch) == 0 {
			continue
		}
		if err := re.outbox.port.Send(batch...); err != nil {
			go re.Disconnected(re.outbox.port, err)
			re.outbox.port = nil
			re.outbox.later = later
			return
		}
	}
	re.actorWatches.stopAgainLocked()
	re.requests.again(func(m *wire.Request) { _ = re.outbox.writeLocked([]wire.Msg{m}) })
}

// getsLocked repeats the Gets of objects that somebody waits for. They come after the submits: an owner that has
// lost those would not know the objects.
func (re *rejoining) getsLocked() []wire.Msg {
	var out []wire.Msg
	re.handles.table.each(func(_ *shard, h *Handle) {
		if h.flags&asked != 0 {
			out = append(out, &wire.Get{ID: h.id})
		}
		if h.flags&fetching != 0 {
			out = append(out, &wire.Get{ID: h.id, Fetch: true})
		}
	})
	return out
}

// kill makes every pending and later operation fail with cause.
func (re *rejoining) kill(cause error) {
	re.fail.Do(func() {
		defer re.straight.close() // the same
		defer re.followed.close() // after the client is dead: nothing is added any more
		re.shutdown.Lock()        // whoever starts a goroutine has counted it by now, or sees that we are dead
		defer re.shutdown.Unlock()
		re.cause = cause
		close(re.dead)
		re.end()
		re.handles.releaser.close()
		re.gets.soon.close()
		re.gets.long.close()
	})
}
