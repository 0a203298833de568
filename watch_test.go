package mobula

import (
	"errors"
	"testing"

	"mobula/internal/errs"
)

func TestAnEventIsReadAsItWasWritten(t *testing.T) {
	for _, ev := range []ActorEvent{
		{Phase: ActorAlive},
		{Actor: "0123", Phase: ActorRestarting, Restarts: 300},
		{Actor: "0123", Phase: ActorDead, Restarts: 1, Err: &errs.Error{Code: errs.CodeActorDied, Msg: "why", Cause: []*errs.Error{errs.New(errs.CodeDeadline, "late")}}},
	} {
		b, err := ev.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got ActorEvent
		if err := got.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if got.Actor != ev.Actor || got.Phase != ev.Phase || got.Restarts != ev.Restarts || (got.Err == nil) != (ev.Err == nil) {
			t.Errorf("got %+v, want %+v", got, ev)
		}
		if ev.Err != nil && (!errors.Is(got.Err, ErrActorDied) || !errors.Is(got.Err, ErrDeadline) || got.Err.Error() != ev.Err.Error()) {
			t.Errorf("got %v, want %v", got.Err, ev.Err)
		}
		for n := range len(b) {
			_ = got.UnmarshalBinary(b[:n]) // an error or an event, and no panic
		}
	}
}
