package world

import (
	"fmt"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// actorHandle is an actor that a program has created, and the calls that it has made.
type actorHandle struct {
	id    ids.ActorID
	calls []ids.ObjectID
	may   bool // its calls may fail
}

// create makes an actor: without a name, with one of its own, or with one that all programs share.
func (pr *program) create() {
	c := pr.call
	c.calls++
	s := &wire.TaskSpec{ID: ids.Derive(c.task, c.calls), Parent: c.task, Opts: options["new"], Kind: wire.TaskActorCreate}
	s.Actor = ids.ActorID(s.ID)
	a := &actorHandle{id: s.Actor}
	kind := pr.w.rng.IntN(5)
	if pr.w.cfg.NoTables {
		kind = 4
	}
	switch kind {
	case 0:
		s.Opts = named(pr.proc.n, fmt.Sprintf("%d.%d", pr.n, c.calls))
		a.may = pr.w.plan.tablesFail() // and then its name cannot be claimed
	case 1, 2:
		s.Opts = named(pr.proc.n, sharedName(pr.proc.n))
		if pr.w.rng.IntN(2) == 0 { // where other jobs do not reach it
			s.Opts.Affinity, s.Opts.Node = wire.AffinitySoft, pr.w.nodes[pr.w.rng.IntN(len(pr.w.nodes))].home
		}
		a.may = true // it is maybe another program's, and ends with that
	}
	handle := c.send(s)[0]
	if s.Opts.ActorName != "" && !pr.found(a, handle) {
		return
	}
	pr.actors = append(pr.actors, a)
}

// found waits until a named actor is there, or another of its name is found; false: its creation has failed.
func (pr *program) found(a *actorHandle, handle ids.ObjectID) bool {
	c := pr.call
	pr.proc.handles[handle].names = true
	out := c.get(handle)[0]
	if out.err != nil {
		if !a.may {
			pr.w.fail("an actor with a name of its own cannot be created: %v", out.err)
		}
		c.release(handle)
		return false
	}
	if out.actor != a.id {
		a.id = out.actor
		id := ids.TaskID(a.id).Return(0)
		pr.proc.hold(id, true)
		c.held = append(c.held, id)
		c.release(handle)
	}
	return true
}

// sharedName is the name that the programs of a node share: an actor of another home is not reached, and one that runs on another node by its own job alone.
func sharedName(n *Node) string { return "shared." + n.home.String() }

// named are the options of an actor with a name.
func named(n *Node, name string) *wire.TaskOptions {
	o := *options["new"]
	o.Namespace, o.ActorName, o.GetIfExists = "world", name, name == sharedName(n)
	return &o
}

// callActor calls one, sometimes with an argument that is not there yet.
func (pr *program) callActor() {
	c, m := pr.call, pr.w.model
	a := pr.actors[pr.w.rng.IntN(len(pr.actors))]
	c.calls++
	c.seqs[a.id]++ // handles share it that name one actor
	s := &wire.TaskSpec{ID: ids.Derive(c.task, c.calls), Parent: c.task, Opts: options["inc"], Kind: wire.TaskActorCall, Actor: a.id, Seq: c.seqs[a.id]}
	x := expectation{any: true, may: a.may, deps: []ids.ObjectID{ids.TaskID(a.id).Return(0)}}
	if id, ok := pr.any(); ok && pr.w.rng.IntN(4) == 0 && m.want[id].err == 0 { // else it fails with it
		s.Args, x.deps = []wire.Arg{{Ref: id}}, append(x.deps, id)
	}
	id := c.send(s)[0]
	a.calls = append(a.calls, id)
	pr.expect(id, x)
	if a.id.Job() != pr.proc.job { // what it gives is another job's
		pr.get(id)
	}
}

// killActor ends an actor, for good or to restart.
func (pr *program) killActor() {
	w := pr.w
	i := w.rng.IntN(len(pr.actors))
	a := pr.actors[i]
	m := &wire.KillActor{Actor: a.id, Restart: w.rng.IntN(2) == 0}
	if !m.Restart {
		m.Stop = w.rng.IntN(2) == 0
		pr.actors = slices.Delete(pr.actors, i, i+1)
	}
	for _, id := range a.calls {
		w.model.want[id].may = true
	}
	w.model.disturbed = w.now
	pr.proc.send(m)
}
