package shell

import "mobula/remote"

// event is what a peer's actor steps. Each is a pointer, so that one that is delivered again after a panic is known.
type event interface {
	// step steps the core, through d.
	step(now int64, d *driven)
	// committed is whether what the step changed is saved.
	committed() *bool
}

// mark is the part that all events have.
type mark struct{ done bool }

func (m *mark) committed() *bool { return &m.done }

// send is a message for the other node.
type send struct {
	mark
	payload []byte
	life    uint64 // which it is for
}

func (e *send) step(now int64, d *driven) {
	d.sent = e.payload
	d.step(now, remote.Send{Payload: e.payload, To: e.life})
}

// batch is what a read has brought.
type batch struct {
	mark
	link    remote.ConnID
	frames  []frame
	turn    bool          // its reader has the turn, and calls the handlers
	stepped chan struct{} // of capacity 1: told once, when it was stepped or is given up
}

func (e *batch) step(now int64, d *driven) {
	for i := range e.frames {
		switch f := &e.frames[i]; f.kind {
		case kindUse:
			d.step(now, remote.UseReceived{Conn: e.link})
		case kindMessage:
			d.step(now, remote.Received{Conn: e.link, Number: f.number, Payload: f.body})
		case kindAck:
			d.step(now, remote.AckReceived{Conn: e.link, Number: f.number})
		}
	}
	d.batch = e
}

// opened is a connection on which nothing was said yet.
type opened struct {
	mark
	link   *link
	dialed bool
}

func (e *opened) step(now int64, d *driven) {
	d.peer.links[e.link.id] = e.link
	d.step(now, remote.Connected{Conn: e.link.id, Dialed: e.dialed})
}

// coreEvent is any other event of the core.
type coreEvent struct {
	mark
	ev remote.Event
}

func (e *coreEvent) step(now int64, d *driven) {
	if c, ok := e.ev.(remote.Closed); ok {
		delete(d.peer.links, c.Conn)
	}
	d.step(now, e.ev)
}
