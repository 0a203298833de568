package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
	"mobula/wire"
)

// What a call of another job's actor fails with its owner decides, however the actor has left its worker, and whatever is known first.
func TestACallOfAnotherJobsActorFailsAsItsOwnerSays(t *testing.T) {
	const guest, place = ids.ClientID(8), ids.LeaseID(900)
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	id := ids.ActorID(far.ID)
	left := map[string]func(*script, wire.ExecTask){
		"its owner says so first": func(*script, wire.ExecTask) {},
		"its process ends":        func(s *script, _ wire.ExecTask) { s.step(ClientGone{Client: guest}) },
		"its worker refuses": func(s *script, x wire.ExecTask) {
			s.from(guest, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: place, Err: errs.New(errs.CodeActorUnavailable, "it is not here")})
		},
		"its worker refuses and ends": func(s *script, x wire.ExecTask) {
			s.from(guest, &wire.Done{Task: x.Spec.ID, Attempt: x.Attempt, Lease: place, Err: errs.New(errs.CodeActorUnavailable, "it is not here")})
			s.step(ClientGone{Client: guest})
		},
	}
	for how, leaves := range left {
		for _, c := range []struct {
			says    actor.State
			retries int32
			want    errs.Code // of the call; 0: it is made again
		}{
			{actor.Dead, 0, errs.CodeActorDied}, {actor.Dead, 1, errs.CodeActorDied},
			{actor.Restarting, 0, errs.CodeActorUnavailable}, {actor.Restarting, 1, 0},
		} {
			s := newScript(t, Config{})
			s.step(ClientJoined{Client: guest, Role: wire.RoleWorker, Guest: true})
			call := s.call(far, 1)
			opts := &wire.TaskOptions{MaxTaskRetries: c.retries}
			s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: guest, Lease: place, Opts: opts}})
			leaves(s, s.executed(guest))
			if s.state(call).Terminal() {
				t.Fatalf("%s: the call is %v before the owner has spoken", how, s.state(call))
			}
			s.step(FromDirectory{ActorAt{Actor: id, State: c.says, Opts: opts}})
			if c.want != 0 {
				s.wantError(call.ID.Return(0), c.want)
				continue
			}
			s.step(FromDirectory{ActorAt{Actor: id, State: actor.Alive, Worker: worker2, Lease: place + 1, Opts: opts}})
			if got := s.pushed(worker2); len(got) != 1 || got[0] != call.ID {
				t.Errorf("%s: where it is now: pushed %v", how, got)
			}
		}
	}
}

// An owner that says nothing of its actor holds up nobody for long.
func TestTheWaitForAnotherOwnersWordEnds(t *testing.T) {
	s := newScript(t, Config{})
	s.step(ClientJoined{Client: 8, Role: wire.RoleWorker, Guest: true})
	far := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(9, 9), 1)}
	call := s.call(far, 1)
	s.step(FromDirectory{ActorAt{Actor: ids.ActorID(far.ID), State: actor.Alive, Worker: 8, Lease: 900, Opts: &wire.TaskOptions{}}})
	s.executed(8)
	s.step(ClientGone{Client: 8})
	if s.state(call).Terminal() {
		t.Fatalf("the call is %v at once", s.state(call))
	}
	s.pass(s.c.cfg.SettleGrace)
	s.wantError(call.ID.Return(0), errs.CodeActorUnavailable)
	if s.c.clients.client(8) != nil {
		t.Error("the worker that is gone is still known")
	}
}
