package client

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// one is a task's only handle together with the slice that Submit gives.
type one struct {
	h Handle
	p [1]*Handle
}

// Submit sends a task and gives a handle on each of its returns; a stream has none. It
// fills in only the Seq of an actor call whose Seq is 0, counting for the task that ctx
// belongs to. It blocks for credit alone; when it fails, nothing was sent. The caller
// keeps the handles of the arguments until it returns.
func (c *Client) Submit(ctx context.Context, spec *wire.TaskSpec) ([]*Handle, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	if c.credit.on.Load() {
		if err := c.admit(ctx, c.task(ctx), wire.CostOfSpec(spec)); err != nil {
			return nil, err
		}
	}
	hs := c.returns(spec)
	var err error
	if spec.Kind == wire.TaskActorCall && spec.Seq == 0 {
		err = c.submitInOrder(ctx, spec)
	} else {
		err = c.submit(&wire.Submit{Spec: spec})
	}
	if err != nil {
		for _, h := range hs {
			h.Release()
		}
		return nil, err
	}
	return hs, nil
}

func (c *Client) submitInOrder(ctx context.Context, spec *wire.TaskSpec) error {
	o := c.task(ctx).orderOf(spec.Actor)
	o.mu.Lock()
	defer o.mu.Unlock()
	spec.Seq = o.seq + 1
	if err := c.submit(&wire.Submit{Spec: spec}); err != nil {
		return err
	}
	o.seq++
	return nil
}

// returns makes the handles of a task in one allocation.
func (c *Client) returns(spec *wire.TaskSpec) []*Handle {
	n := int(spec.Opts.NumReturns)
	if n <= 0 {
		return nil
	}
	if n == 1 {
		b := new(one)
		b.h.c, b.h.id = c, spec.ID.Return(0)
		b.p[0], _ = c.table.adopt(&b.h)
		return b.p[:]
	}
	hs, ps := make([]Handle, n), make([]*Handle, n)
	for i := range hs {
		hs[i].c, hs[i].id = c, spec.ID.Return(i)
		ps[i], _ = c.table.adopt(&hs[i])
	}
	return ps
}

// Promised gives the handle on what a task promises (wire.TaskSpec.Promises) that is about to be submitted.
func (c *Client) Promised(id ids.ObjectID) *Handle {
	h, _ := c.table.adopt(&Handle{c: c, id: id})
	return h
}

// Bind gives the handle of a reference found in a value and tells the owner, if this
// process had none.
func (c *Client) Bind(id ids.ObjectID) *Handle {
	h, fresh := c.table.adopt(&Handle{c: c, id: id})
	if fresh {
		_ = c.send(&wire.AddRef{ID: id}) // where the connection is gone, every use of h says so
	}
	return h
}

// Weak gives a handle that names an object and does not hold it.
func (c *Client) Weak(id ids.ObjectID) *Handle { return &Handle{c: c, id: id, flags: removed} }

// Cancel cancels a task. With Force it does not wait for the task to notice, with Insist not for long; with
// Recursive what the task submitted is cancelled too.
func (c *Client) Cancel(m wire.Cancel) error {
	if err := c.Err(); err != nil {
		return err
	}
	return c.send(&m)
}

// Abandon cancels a task of a graph that nobody needs any more, with what it has submitted; one that takes no notice goes with its
// process. Where the connection is gone there is nothing to cancel: the job is gone too.
func (c *Client) Abandon(task ids.TaskID) {
	_ = c.Cancel(wire.Cancel{Task: task, Recursive: true, Insist: true})
}

// KillActor ends an actor; with restart it comes back as after a crash.
func (c *Client) KillActor(actor ids.ActorID, restart bool) error {
	if err := c.Err(); err != nil {
		return err
	}
	return c.send(&wire.KillActor{Actor: actor, Restart: restart})
}

func checkMeta(id ids.ObjectID, meta []byte) error {
	if len(meta) > wire.MaxMeta {
		return errs.New(errs.CodeNotEncodable, "object %v: its layout takes %d bytes, at most %d are possible: use a simpler type", id, len(meta), wire.MaxMeta)
	}
	return nil
}
