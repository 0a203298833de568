package owner

import (
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// nodeGone ends what another node had of the job: its workers, and the copies in its store. What ran there runs again uncharged.
func (jb *job) nodeGone(ev NodeGone) {
	for _, id := range slices.Sorted(maps.Keys(jb.clients.byID)) {
		cl := jb.clients.byID[id]
		if cl == nil || cl.gone || jb.nodeOf(cl) != ev.Node {
			continue
		}
		cl.drainRequested, cl.lostErr = true, ev.Err
		jb.clientGone(ClientGone{Client: id, Err: ev.Err})
		if len(cl.leases) > 0 {
			jb.deaths.settleWorker(cl) // nobody is left to say more
		}
	}
	jb.copies.nodeGone(ev.Node, ev.Err)
	jb.borrows.nodeGone(ev.Node)
	jb.peers.takeAwaited(ev.Node)
}

// nodeDoubted ends what a node had of the job that is most likely dead, if all of it may run or be made twice. If it lives after all, the job is closed
// there before it is used again, so nothing of what it has comes back. A job with an actor there waits until the node's life is over: there must
// not be two.
func (jb *job) nodeDoubted(ev NodeDoubted) {
	if jb.hasActorAt(ev.Node) {
		return
	}
	awaited := jb.peers.takeAwaited(ev.Node)
	jb.nodeGone(NodeGone(ev))
	jb.effects = append(jb.effects, Effect{Kind: Abandon, Node: ev.Node})
	for _, m := range awaited { // another job may keep what it has there
		jb.peers.bringNow(m)
	}
}

// hasActorAt tells whether an actor of the job is on a node, or is being made there.
func (jb *job) hasActorAt(node ids.Home) bool {
	for _, cl := range jb.clients.byID {
		if cl.gone || jb.nodeOf(cl) != node {
			continue
		}
		if slices.ContainsFunc(cl.leases, func(l *leaseRec) bool {
			return l.actor != nil || l.class != nil && l.class.kind == wire.TaskActorCreate
		}) {
			return true
		}
	}
	return false
}
