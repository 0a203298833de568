package mobula

import (
	"context"
	"iter"
	"runtime"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// ActorPhase is where an actor stands, as Watch tells.
type ActorPhase uint8

// The phases of an actor.
const (
	ActorStarting   ActorPhase = iota + 1 // it is not constructed yet
	ActorAlive                            // it takes calls
	ActorRestarting                       // its process died; its constructor runs again
	ActorDead                             // for good
)

// String names the phase.
func (s ActorPhase) String() string {
	if s < ActorStarting || s > ActorDead {
		return "unknown"
	}
	return [...]string{"starting", "alive", "restarting", "dead"}[s-1]
}

// ActorEvent is where an actor stands now.
type ActorEvent struct {
	Actor    string // its ID
	Phase    ActorPhase
	Restarts int   // so far
	Err      error // why it restarts, or died: ErrActorDied
}

// Watch tells where an actor stands: what is true at first, then each change, to the last one, its death. Of an actor that is dead already
// it tells that. It works for actors of other jobs that have a name, and over restarts of the node: changes that were missed
// meanwhile are told as what is true then. A watch does not keep the actor alive. It ends after ActorDead, or
// with an error where ctx ends or the connection is lost.
func Watch[T any](ctx context.Context, actor ActorRef[T]) iter.Seq2[ActorEvent, error] {
	h, err := actor.cell.handle()
	if err != nil {
		return func(yield func(ActorEvent, error) bool) { yield(ActorEvent{}, err) }
	}
	c, id := actor.cell.life.client, ids.ActorID(h.ID().Task)
	runtime.KeepAlive(actor.cell)
	return watch(ctx, c, id)
}

func watch(ctx context.Context, c *client.Client, id ids.ActorID) iter.Seq2[ActorEvent, error] {
	return func(yield func(ActorEvent, error) bool) {
		w, err := c.WatchActor(id)
		if err != nil {
			yield(ActorEvent{}, err)
			return
		}
		defer w.Close()
		for {
			news, err := w.Next(ctx)
			if err != nil {
				yield(ActorEvent{}, err)
				return
			}
			for _, n := range news {
				if !yield(eventOf(c, &n), nil) || n.State == wire.ActorDead {
					return
				}
			}
		}
	}
}

func eventOf(c *client.Client, n *wire.ActorNews) ActorEvent {
	ev := ActorEvent{Actor: n.Actor.String(), Phase: ActorPhase(n.State), Restarts: int(n.Restarts)}
	switch {
	case n.Err == nil:
	case n.State == wire.ActorDead && n.Err.Code != errs.CodeActorDied:
		ev.Err = &errs.Error{Code: errs.CodeActorDied, Task: n.Err.Task, Msg: n.Err.Msg, Cause: []*errs.Error{n.Err}}
	default:
		ev.Err = n.Err
	}
	ev.Err = failure(c, ev.Err)
	return ev
}
