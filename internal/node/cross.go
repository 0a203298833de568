package node

import (
	"context"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/wire"
)

// References go from job to job inside messages: of a worker whose actor another job calls, and of whoever got a reference so. Their owners
// hold them from before such a message is passed on until the owner that gets it has said that it holds them itself.

// eachHeld calls f for each object that who gets a message holds from then on.
func eachHeld(m wire.Msg, f func(ids.ObjectID)) {
	all := func(refs []ids.ObjectID) {
		for _, id := range refs {
			f(id)
		}
	}
	result := func(r *wire.Result) {
		all(r.Value.Refs)
		if r.Err != nil {
			all(r.Err.AllRefs())
		}
	}
	switch m := m.(type) {
	case *wire.AddRef:
		f(m.ID)
	case *wire.PutValue:
		all(m.Value.Refs)
	case *wire.Seal:
		all(m.Value.Refs)
	case *wire.Submit:
		for i := range m.Spec.Args {
			if a := &m.Spec.Args[i]; !a.Ref.IsZero() {
				f(a.Ref)
			} else {
				all(a.Value.Refs)
			}
		}
	case *wire.StreamItem:
		result(&m.Result)
	case *wire.Done:
		for i := range m.Results {
			result(&m.Results[i])
		}
		if m.Err != nil {
			all(m.Err.AllRefs())
		}
	}
}

// crosses tells whether a message that goes to the owner of job names objects of others that it is to hold.
func crosses(job ids.JobID, m wire.Msg) bool {
	found := false
	eachHeld(m, func(id ids.ObjectID) { found = found || id.Job() != job })
	return found
}

// sendAcross passes a message on to an owner, with the references to other jobs' objects that are in it.
func (n *Node) sendAcross(ctx context.Context, s *session, job ids.JobID, m wire.Msg) error {
	if !crosses(job, m) {
		return n.sendOwner(ctx, s, job, []wire.Msg{m})
	}
	refs := make(map[ids.JobID][]ids.ObjectID)
	eachHeld(m, func(id ids.ObjectID) {
		if of := id.Job(); of != job && !slices.Contains(refs[of], id) {
			refs[of] = append(refs[of], id)
		}
	})
	owners := slices.Sorted(maps.Keys(refs))
	token := n.crossings.Add(1)
	for _, of := range owners {
		n.jobs.post(of, owner.FromOwner{Job: job, Msg: owner.Passing{Token: token, Refs: refs[of]}})
	}
	err := n.sendOwner(ctx, s, job, []wire.Msg{m})
	for _, of := range owners {
		if o := n.jobs.get(job); o != nil {
			o.ref.Deliver(owner.FromOwner{Job: of, Msg: owner.Reached{Token: token}})
		} else {
			n.jobs.post(of, owner.FromOwner{Job: job, Msg: owner.Arrived{Token: token}})
		}
	}
	return err
}

// toPeer passes on what the owner of one job says to that of another.
func (n *Node) toPeer(from, to ids.JobID, m any) {
	if o := n.jobs.get(to); o != nil {
		o.ref.Deliver(owner.FromOwner{Job: from, Msg: m})
		return
	}
	switch m.(type) {
	case *wire.AddRef, *wire.Get, *wire.Resync:
		n.jobs.post(from, owner.FromOwner{Job: to, Msg: owner.JobGone{}})
	}
}
