package call

import (
	"context"
	"runtime"
	"unicode/utf8"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/wire"
)

// A reference to an actor is a reference to the result of its constructor, which resolves when the actor is
// constructed.

// actor is the id of the actor that c names. It is valid without c.
func (c *Cell) actor() (ids.ActorID, error) {
	h, err := c.handle()
	if err != nil {
		return ids.ActorID{}, err
	}
	id := ids.ActorID(h.ID().Task)
	runtime.KeepAlive(c)
	return id, nil
}

// Constructed waits until the actor is constructed; the error says why it could not be. For a reference of an actor
// to itself it returns at once.
func (c *Cell) Constructed(ctx context.Context) error {
	if err := c.Err(); err != nil || c.life.self {
		return err
	}
	d, err := c.fetch(ctx)
	d.Release()
	return err
}

// Stop ends the actor gracefully, and waits for its end. In a call of the actor itself it does not wait.
func (c *Cell) Stop(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	id, err := c.actor()
	if err != nil {
		return err
	}
	if tc := client.FromContext(ctx); tc != nil && tc.Spec != nil && tc.Spec.Kind != wire.TaskNormal && tc.Spec.Actor == id {
		return tc.Client.AskStop(id)
	}
	if err = c.life.client.StopActor(ctx, id); err != nil {
		err = failure(c.life.client, err)
	}
	runtime.KeepAlive(c)
	return err
}

// Kill ends the actor at once. With restart it comes back as after a crash.
func (c *Cell) Kill(ctx context.Context, restart bool) error {
	if err := ctx.Err(); err != nil {
		return errs.From(err)
	}
	id, err := c.actor()
	if err != nil {
		return err
	}
	err = c.life.client.KillActor(id, restart)
	runtime.KeepAlive(c)
	return err
}

// Spawn submits an actor's creation. It waits only for the creation of a named actor, because the name may be
// taken.
func (k *Call) Spawn() (*Cell, error) {
	if k.err == nil {
		if k.spec.Opts.ActorName == "" && k.tc.Attempt > 1 { // the actor of an earlier attempt may be ending, or dead
			k.spec.ID = ids.Derive(k.spec.ID, uint64(k.tc.Attempt))
		}
		k.spec.Actor = ids.ActorID(k.spec.ID)
		if o := k.spec.Opts; o.ActorName != "" && o.Namespace == "" {
			own := *o
			own.Namespace = k.tc.Client.Welcome().Namespace
			k.spec.Opts = &own
		}
		if k.spec.Opts.ActorName != "" {
			k.tc.Client.Flush() // a handle that was released may be the last one of an actor of that name
		}
	}
	hs := k.Submit()
	if k.err != nil {
		return nil, k.err
	}
	a := newCell(k.tc.Client, hs[0], nil)
	a.life.room = k.tc.Client.Room(k.spec.Actor, int(k.spec.Opts.MaxPendingCalls))
	if k.spec.Opts.ActorName == "" {
		return a, nil
	}
	d, err := k.tc.Client.Get1(k.ctx, hs[0])
	if err != nil {
		err = failure(k.tc.Client, err)
		a.Release()
		return nil, err
	}
	defer d.Release()
	// With GetIfExists the creation may resolve to another actor's id.
	if id, ok := actorID(d.Value); ok && id != k.spec.Actor {
		a.Release()
		found, room, err := lookUp(k.ctx, k.tc.Client, k.spec.Opts.Namespace, k.spec.Opts.ActorName)
		if err != nil || found != id { // it has died meanwhile
			room = nil
		}
		return bindActor(k.tc.Client, id, room), nil
	}
	return a, nil
}

// actorID reads the id that a creation resolved to. Not ok means no id: the actor is the created one.
func actorID(v wire.Value) (ids.ActorID, bool) {
	id, ok := ids.TaskOf(v.Data)
	return ids.ActorID(id), ok
}

func bindActor(c *client.Client, id ids.ActorID, room *client.Room) *Cell {
	a := newCell(c, c.Bind(ids.TaskID(id).Return(0)), nil)
	a.life.room = room
	return a
}

// FindActor finds an actor by its name; an empty namespace is the cluster's own.
func FindActor(ctx context.Context, namespace, name string) (*Cell, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(name) || !utf8.ValidString(namespace) {
		return nil, errs.New(errs.CodeNotFound, "no actor is named %q in namespace %q, since that is not UTF-8", name, namespace)
	}
	if namespace == "" {
		namespace = tc.Client.Welcome().Namespace
	}
	id, room, err := lookUp(ctx, tc.Client, namespace, name)
	if err != nil {
		return nil, err
	}
	return bindActor(tc.Client, id, room), nil
}

// lookUp finds an actor by its name, and the room for its calls.
func lookUp(ctx context.Context, c *client.Client, namespace, name string) (ids.ActorID, *client.Room, error) {
	var reply state.ActorReply
	if err := Request(ctx, c, state.MethodActorGet, state.ActorRequest{Namespace: namespace, Name: name}, &reply); err != nil {
		return ids.ActorID{}, nil, err
	}
	id, ok := actorID(wire.Value{Data: reply.Actor})
	if !ok {
		return id, nil, errs.New(errs.CodeProtocol, "actor %q: the node answered with an id of %d bytes", name, len(reply.Actor))
	}
	return id, c.Room(id, reply.MaxPendingCalls), nil
}

// Self is the actor that ctx belongs to. It does not keep the actor alive.
func Self(ctx context.Context) (*Cell, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return nil, err
	}
	if tc.Spec == nil || tc.Spec.Kind == wire.TaskNormal {
		return nil, errs.New(errs.CodeInvalid, "Self: the context belongs to no actor's call or constructor")
	}
	id := ids.TaskID(tc.Spec.Actor)
	if tc.Spec.Kind == wire.TaskActorCreate {
		id = tc.Spec.ID
	}
	l := &loneLife{life: life{client: tc.Client, self: true}}
	l.held = l.slot[:]
	l.held[0].Store(tc.Client.Weak(id.Return(0)))
	return &Cell{life: &l.life}, nil
}
