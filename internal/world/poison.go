package world

import (
	"slices"

	"mobula/gcs"
	"mobula/gcs/directory"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/objectstore"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
	"mobula/remote/transfer"
	"mobula/wire"
)

// poison drops an event of a part of a kind, which brings down two of its cores.
func poison(k kind) func(pl *plan, n *Node) bool {
	return func(pl *plan, n *Node) bool {
		pl.armed = &armed{n: n, kind: k, until: pl.w.steps + patience, poisons: true}
		return true
	}
}

// mayPoison tells whether an event may be dropped: whoever waits for it gets an answer, or is asked anew by the core that follows, or it is vital, and
// is not dropped. Where that ends a program, another one goes on.
func (pl *plan) mayPoison(ev any) bool {
	var client ids.ClientID
	switch ev := ev.(type) {
	case owner.FromClient:
		client = ev.Client
	case objectstore.FromClient:
		client = ev.Client
	case objectstore.ClientJoined: // whose, nobody knows yet
		return pl.spares()
	case objectstore.PinForGet:
		client = ev.Client
	case jobs.Hosted, jobs.Restored, jobs.AllRestored: // its tasks fail, with the reason, or the node does not start
		return false
	case jobs.Event:
		return jobs.Vital(ev) || jobs.AskOf(ev) != 0 && pl.spares()
	case cluster.Inspect, raylet.Inspect:
		return false
	case gcs.Event, cluster.Event, *peerEvent, sched.Event, pool.Event, raylet.OfJob:
	case objectstore.ClientGone, objectstore.NodeGone, objectstore.DropJob, objectstore.JobOpened:
	case objectstore.PinArgs, directory.Claim, directory.Claimed, directory.Kill, directory.Locate, transfer.Fetch, transfer.Served:
	default:
		return false
	}
	isDriver := slices.ContainsFunc(pl.w.programs, func(p *program) bool { return p.proc.id == client })
	return client == 0 || !isDriver || pl.spares()
}

// spares tells whether a program may end: others go on, also where a node is lost with its programs.
func (pl *plan) spares() bool { return pl.running() > 2 && pl.w.cfg.Seed%3 != 1 }

// running counts the programs that have not ended and are not about to, for a fault.
func (pl *plan) running() (n int) {
	for _, p := range pl.w.programs {
		if !p.ended && !p.cut && !p.proc.away {
			n++
		}
	}
	return n
}

// poisoned notes that an owner has dropped a client's messages: what they were to make may be an error, and the client may have to go.
func (m *model) poisoned(w *World, client ids.ClientID, msgs []wire.Msg) {
	for _, msg := range msgs {
		switch x := msg.(type) {
		case *wire.Submit:
			m.unmade[ids.ObjectID{Task: x.Spec.ID}] = true
			m.failsWith(x.Spec.Parent)
		case *wire.PutValue:
			m.unmade[x.ID] = true
		case *wire.Seal:
			m.unmade[x.ID] = true
		}
	}
	m.turnedAway(w, client)
}

// failsWith notes that a task has called one that was dropped, or is to be: it fails with it, and so does what has called it.
func (m *model) failsWith(id ids.TaskID) {
	for known := true; known; id, known = m.callers[id] {
		m.unmade[ids.ObjectID{Task: id}] = true
	}
}

// turnedAway notes that a client may be told to go, since a message of it was dropped.
func (m *model) turnedAway(w *World, id ids.ClientID) {
	for _, p := range w.processes {
		if p.id == id && !p.dead {
			p.away = true
			m.bury(p)
		}
	}
}

// isUnmade tells whether what was to make an object was dropped.
func (m *model) isUnmade(id ids.ObjectID) bool {
	if !id.IsPut() {
		id.Index = 0
	}
	return m.unmade[id]
}
