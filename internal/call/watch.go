package call

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"log/slog"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Event is the present state of an actor, as mobula.ActorEvent.
type Event struct {
	Actor    string
	Phase    uint8
	Restarts int
	Err      error
}

// Watch tells the state of the actor that c names: first the present one, then each change, up to its death.
func Watch(ctx context.Context, c *Cell) iter.Seq2[Event, error] {
	id, err := c.actor()
	if err != nil {
		return func(yield func(Event, error) bool) { yield(Event{}, err) }
	}
	return watch(ctx, c.life.client, id)
}

func watch(ctx context.Context, by *client.Client, id ids.ActorID) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w, err := by.WatchActor(id)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer w.Close()
		for {
			news, err := w.Next(ctx)
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, n := range news {
				if !yield(eventOf(by, &n), nil) || n.State == wire.ActorDead {
					return
				}
			}
		}
	}
}

func eventOf(c *client.Client, n *wire.ActorNews) Event {
	ev := Event{Actor: n.Actor.String(), Phase: uint8(n.State), Restarts: int(n.Restarts)}
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

// Notify calls tell for each event of the actor that of names. tell calls the actor that ctx belongs to and waits for that call. Notify
// keeps neither actor alive.
func Notify(ctx context.Context, of *Cell, tell func(ctx context.Context, self *Cell, ev Event) error) (stop context.CancelFunc, err error) {
	id, err := of.actor()
	if err != nil {
		return nil, err
	}
	by := of.life.client
	return StartTimer(ctx, 0, false, func(life context.Context, self *Cell) error { // a single long tick, at once
		for ev, err := range watch(life, by, id) {
			if err != nil {
				return nil // the actor's life has ended, or the connection
			}
			if err := tell(life, self, ev); errors.Is(err, errs.ErrActorDied) {
				return nil
			} else if err != nil && life.Err() == nil {
				slog.Default().Warn("an actor was told of another, and its method failed", "actor", self.ActorID(), "of", id, "err", err)
			}
		}
		return nil
	})
}

// Append writes the event.
func (e Event) Append() []byte {
	b := binary.AppendUvarint([]byte{e.Phase}, uint64(e.Restarts))
	b = append(binary.AppendUvarint(b, uint64(len(e.Actor))), e.Actor...)
	if e.Err == nil {
		return b
	}
	return wire.AppendError(append(b, 1), errs.From(e.Err))
}

// ParseEvent reads it.
func ParseEvent(b []byte) (e Event, err error) {
	bad := errs.New(errs.CodeProtocol, "%d bytes are no ActorEvent", len(b))
	if len(b) == 0 {
		return e, bad
	}
	e.Phase = b[0]
	restarts, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return e, bad
	}
	b = b[1+n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return e, bad
	}
	e.Restarts, e.Actor = int(restarts), string(b[n:n+int(size)])
	if b = b[n+int(size):]; len(b) == 0 {
		return e, nil
	}
	why, err := wire.ParseError(b[1:])
	if err != nil {
		return e, err
	}
	e.Err = why
	return e, nil
}
