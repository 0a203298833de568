package node

import (
	"context"
	"sync"

	"mobula/internal/ids"
	"mobula/internal/node/link"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// agent stands in the place of the owner of a job of another node: it passes on to the job's home what this node's store, scheduler and workers tell the
// owner. It decides nothing (decision 0022), and what it keeps is only held back: see programGate.
type agent struct {
	job     ids.JobID
	opening uint64 // no other agent of this node has it
	said    *internode.OpenJob
	box     *link.Box // to the job's home

	life context.Context // ends with the job here
	end  context.CancelFunc

	mu    sync.Mutex   // while it is held nothing overtakes what passes the gate
	gate  *programGate // guarded by mu
	early []early      // guarded by mu
}

// post passes an event on, and does not wait.
func (a *agent) post(ev owner.Event) {
	var m internode.Msg
	switch ev := ev.(type) {
	case owner.FromSched:
		m = &internode.FromSched{Job: a.job, Msg: ev.Msg}
	case owner.FromStore:
		m = &internode.FromStore{Job: a.job, Msg: ev.Msg}
	case owner.ClientJoined:
		m = &internode.ClientJoined{Job: a.job, Client: ev.Client, Role: ev.Role}
	case owner.ClientGone:
		m = &internode.ClientGone{Job: a.job, Client: ev.Client, Err: ev.Err}
	default:
		return // of the directory, or an operator: they ask the job's home
	}
	a.box.Push(m)
	a.box.Flush()
}

// send passes on what a worker says, and waits while the job's home takes no more. The messages are the agent's.
func (a *agent) send(ctx context.Context, client ids.ClientID, msgs []wire.Msg) error {
	a.box.Push(&internode.FromClients{Job: a.job, Items: []internode.ClientMsgs{{Client: client, Msgs: msgs}}})
	a.box.Flush()
	return a.box.Await(ctx)
}

// closed tells whether the job is over here.
func (a *agent) closed() bool { return a.life.Err() != nil }
