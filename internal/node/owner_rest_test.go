package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/raylet/oplog"
	"mobula/raylet/owner"
	"mobula/wire"
)

// What the log cannot take, as it has no room, the next core of the owner knows all the same; and the log has it once it can.
func TestAnOwnerKeepsWhatItsLogCannotTake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	log, err := oplog.Open(dir, logOptions(1<<20, true))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil { // no segment can be made
		t.Fatal(err)
	}
	const job, driver = ids.JobID(1), ids.ClientID(2)
	cfg := owner.Config{Job: job}
	o := &ownerActor{job: job, log: log, core: owner.New(cfg), owners: &owners{base: &base{
		cfg: Config{StoreBytes: 1 << 20}, limited: &limited{log: slog.New(slog.DiscardHandler), every: time.Minute},
	}}}
	sys := actors.NewSystem(actors.Config{})
	if o.ref, err = actors.Spawn(sys, actors.Spec[owner.Event, owner.Effect]{
		Kind: "owner", Name: "owner", New: func(actors.Start) (actors.Core[owner.Event, owner.Effect], []owner.Event, error) {
			return owner.New(cfg), nil, nil
		},
		Do: func(*actors.Ref[owner.Event], owner.Effect) {},
	}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.StopTree(context.Background()) }()
	step := func(ev owner.Event) {
		for _, e := range o.core.Step(1, ev) {
			if e.Kind == owner.Log {
				for i := range *e.Records {
					o.append(&(*e.Records)[i])
				}
			}
		}
	}
	spec := &wire.TaskSpec{ID: ids.Derive(ids.RootTask(job, uint64(driver)), 1), Opts: &wire.TaskOptions{Func: "f", NumReturns: 1}}
	step(owner.ClientJoined{Client: driver, Role: wire.RoleDriver})
	step(owner.FromClient{Client: driver, Msgs: []wire.Msg{&wire.Submit{Spec: spec}}})
	knows := func() bool {
		core, err := o.rebuild(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, known := core.WhyTask(spec.ID)
		return known
	}
	if o.rest.Len() == 0 || !knows() {
		t.Fatalf("%d records are kept, and the next core does not know the task", o.rest.Len())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if o.moveRest(); o.rest.Len() != 0 || log.Stats().Records == 0 || !knows() {
		t.Errorf("%d records are left, the log has %d", o.rest.Len(), log.Stats().Records)
	}
}
