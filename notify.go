package mobula

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"runtime"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Subscription is what Notify gives.
type Subscription struct{ stop context.CancelFunc }

// Stop ends the subscription. A call that it has made already still runs.
func (s *Subscription) Stop() { s.stop() }

// Notify lets the actor that ctx belongs to, in its constructor or a method, hear where another actor stands: each event that Watch would
// tell is a call of that method of its own, in the order of its other calls and never beside them. It ends after ActorDead, by
// Stop, and with the actor's life in its process; where that starts again its constructor subscribes again. It holds neither of the two. An
// error of the method is logged. The error is ErrInvalid outside an actor.
func Notify[T, R, A any](ctx context.Context, method Method1[T, ActorEvent, R], of ActorRef[A], opts ...CallOption) (*Subscription, error) {
	h, err := of.cell.handle()
	if err != nil {
		return nil, err
	}
	c, id := of.cell.life.client, ids.ActorID(h.ID().Task)
	t, err := startTimer(ctx, 0, false, func(life context.Context, self ActorRef[T]) error { // one long tick, at once
		for ev, err := range watch(life, c, id) {
			if err != nil {
				return nil // its life has ended, or the connection
			}
			if _, err := method.Go(life, self, V(ev), opts...).Get(life); errors.Is(err, ErrActorDied) {
				return nil
			} else if err != nil && life.Err() == nil {
				slog.Default().Warn("an actor was told of another, and its method failed", "actor", self.ID(), "of", id, "err", err)
			}
		}
		return nil
	})
	runtime.KeepAlive(of.cell)
	if err != nil {
		return nil, err
	}
	return &Subscription{t.stop}, nil
}

// MarshalBinary writes the event, so that it can be an argument.
func (e ActorEvent) MarshalBinary() ([]byte, error) {
	b := binary.AppendUvarint([]byte{byte(e.Phase)}, uint64(e.Restarts))
	b = append(binary.AppendUvarint(b, uint64(len(e.Actor))), e.Actor...)
	if e.Err == nil {
		return b, nil
	}
	return wire.AppendError(append(b, 1), errs.From(e.Err)), nil
}

// UnmarshalBinary reads it.
func (e *ActorEvent) UnmarshalBinary(b []byte) error {
	bad := errs.New(errs.CodeProtocol, "%d bytes are no ActorEvent", len(b))
	if len(b) == 0 {
		return bad
	}
	*e = ActorEvent{Phase: ActorPhase(b[0])}
	restarts, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return bad
	}
	b = b[1+n:]
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return bad
	}
	e.Restarts, e.Actor = int(restarts), string(b[n:n+int(size)])
	if b = b[n+int(size):]; len(b) == 0 {
		return nil
	}
	err, bad2 := wire.ParseError(b[1:])
	if bad2 != nil {
		return bad2
	}
	e.Err = err
	return nil
}
