package world

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/dealing"
	"mobula/internal/node/jobs"
	"mobula/internal/node/route"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/pool"
	"mobula/wire"
)

// route passes a client's batch on, in order for each who gets part of it.
func (n *Node) route(s *session, msgs []wire.Msg) {
	var run []wire.Msg
	flush := func() {
		if len(run) > 0 {
			n.toOwnerOf(s, s.job, run)
		}
		run = nil
	}
	for _, m := range msgs {
		if s.parted {
			if u, ok := m.(*wire.Unpin); ok { // all else is heard no more
				n.store.box.put(objectstore.FromClient{Client: s.id, Msg: u})
			}
			continue
		}
		to, job := route.Of(s.job, s, m)
		if to == route.Owner && job == s.job && !route.Crosses(job, m) {
			run = append(run, m)
			continue
		}
		flush()
		switch to {
		case route.Owner:
			n.sendAcross(s, job, m)
		case route.Store:
			n.store.box.put(objectstore.FromClient{Client: s.id, Msg: m})
		case route.Stats:
			if m.(*wire.Stats).Worn {
				n.raylet.box.put(pool.Worn{Client: s.id})
			}
		case route.Goodbye:
			s.parted = true
			s.leave(m.(*wire.Bye).Err)
		default:
			n.w.fail("client %v sent a %T, which nobody takes", s.id, m)
		}
	}
	flush()
}

// toOwnerOf gives a client's messages to the owner of a job. One that is not there has ended: the driver is told so, and the store which tasks of it have ended.
func (n *Node) toOwnerOf(s *session, job ids.JobID, msgs []wire.Msg) {
	if o := n.owners[job]; o != nil {
		o.box.put(owner.FromClient{Client: s.id, Msgs: msgs})
	} else if n.links.hosts(job) {
		n.links.agentSend(job, s.id, msgs)
	} else {
		if s.role == wire.RoleDriver && s.job == job {
			n.jobs.box.put(jobs.Missed{Client: s.id, Job: job})
		}
		for _, u := range route.Ended(msgs) {
			n.store.box.put(u)
		}
	}
}

// sendAcross passes a message on with the references to other jobs' objects that are in it: their owners hold them until the owner that gets
// it has said that it does.
func (n *Node) sendAcross(s *session, job ids.JobID, m wire.Msg) {
	if job.Home() != n.home { // what the message has of other jobs is the concern of the job's home
		n.toOwnerOf(s, job, []wire.Msg{m})
		return
	}
	refs := route.Foreign(job, m)
	owners := slices.Sorted(maps.Keys(refs))
	n.w.crossings++
	token := n.w.crossings
	for _, of := range owners {
		n.toPeer(job, of, owner.Passing{Token: token, Refs: refs[of]})
	}
	n.toOwnerOf(s, job, []wire.Msg{m})
	for _, of := range owners {
		if n.owners[job] != nil {
			n.toOwner(job, owner.FromOwner{Job: of, Msg: owner.Reached{Token: token}})
		} else {
			n.toPeer(job, of, owner.Arrived{Token: token})
		}
	}
}

// toPeer passes on what the owner of one job says to that of another.
func (n *Node) toPeer(from, to ids.JobID, m owner.PeerMsg) {
	if to.Home() != n.home {
		n.links.toPeer(dealing.Pair{Own: from, Far: to}, m)
		return
	}
	if n.owners[to] != nil {
		n.toOwner(to, owner.FromOwner{Job: from, Msg: m})
		return
	}
	if owner.Asks(m) {
		n.toOwner(from, owner.FromOwner{Job: to, Msg: owner.JobGone{}})
	}
}

// toOwner gives an owner an event, here or on the job's home; one that is gone has nobody left to care.
func (n *Node) toOwner(job ids.JobID, ev owner.Event) {
	if o := n.owners[job]; o != nil {
		o.box.put(ev)
	} else if n.links.hosts(job) {
		n.links.agentPost(job, ev)
	}
}

// refused is the answer to whoever knocks at a node that is not up.
func refused(n *Node) *errs.Error { return errs.New(errs.CodeNoNode, "%s is not up", n.name) }
