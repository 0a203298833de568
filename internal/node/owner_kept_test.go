package node

import (
	"slices"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/wire"
)

// A core that waits for its clients does not keep what one says that has to go. If it panics at that, the next core gets all that it has kept before.
func TestWhatIsKeptBackOutlivesAPanicAtWhatIsNot(t *testing.T) {
	const job, driver, worker = ids.JobID(1), ids.ClientID(2), ids.ClientID(3)
	o := &ownerActor{job: job, met: true}
	var err error
	if o.core, err = owner.Rebuild(owner.Config{Job: job}, func(func(uint64, []byte) bool) {}); err != nil {
		t.Fatal(err)
	}
	core := ownerCore{o.core, o}
	core.Step(1, owner.Restored{Epoch: 7, Clients: []owner.ClientJoined{{Client: driver, Role: wire.RoleDriver}, {Client: worker, Role: wire.RoleWorker}}})
	core.Step(2, owner.Poisoned{Client: worker, Msgs: []wire.Msg{&wire.Done{}}, Err: errs.New(errs.CodeComponentFailed, "two cores panicked")})
	submit := owner.FromClient{Client: driver, Msgs: []wire.Msg{&wire.Submit{Spec: &wire.TaskSpec{Opts: &wire.TaskOptions{Func: "f"}}}}}
	core.Step(3, submit)
	core.Step(4, owner.FromClient{Client: worker, Msgs: []wire.Msg{&wire.Done{}}})
	kept := o.keptBack(actors.Start{Restart: 1, Reason: &actors.PanicError{Phase: "Step"}})
	if !slices.ContainsFunc(kept, func(ev owner.Event) bool {
		m, ok := ev.(owner.FromClient)
		return ok && m.Client == driver
	}) {
		t.Errorf("kept are %+v", kept)
	}
	core.Step(5, submit)
	if again := o.keptBack(actors.Start{Restart: 1, Reason: &actors.PanicError{Phase: "Step"}}); len(again) != len(kept) {
		t.Errorf("with the event in hand, which the kit gives again, kept are %+v", again)
	}
}
