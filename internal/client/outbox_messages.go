package client

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// Bind gives the handle of a reference found in a value and tells the owner, if this
// process had none.
func (o *outbox) Bind(id ids.ObjectID) *Handle {
	h, fresh := o.handles.table.adopt(&Handle{of: o.handles, id: id})
	if fresh {
		_ = o.send(&wire.AddRef{ID: id}) // where the connection is gone, every use of h says so
	}
	return h
}

// Cancel cancels a task. With Force it does not wait for the task to notice, with Insist not for long; with
// Recursive what the task submitted is cancelled too.
func (o *outbox) cancel(m wire.Cancel) error {
	if err := o.Err(); err != nil {
		return err
	}
	return o.send(&m)
}

// KillActor ends an actor; with restart it comes back as after a crash.
func (o *outbox) KillActor(actor ids.ActorID, restart bool) error {
	if err := o.Err(); err != nil {
		return err
	}
	return o.send(&wire.KillActor{Actor: actor, Restart: restart})
}
