package node

import (
	"context"
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

// route passes a client's batch on, in order for each who gets part of it. It reports
// backpressure by waiting, and ctx's end. It keeps msgs if own, and then, if they are few
// and the owner is idle, the owner's turn runs here. What nobody here takes is refused: its error ends the connection.
func (r *router) route(ctx context.Context, s *session, msgs []wire.Msg, own bool) error {
	turn, err := r.pass(ctx, s, msgs, own, own)
	if turn != nil {
		turn()
	}
	return err
}

// pass is route that may leave the owner's turn to the caller: with offer, who must call it.
func (r *router) pass(ctx context.Context, s *session, msgs []wire.Msg, own, offer bool) (turn func(), err error) {
	if s.faults != nil {
		return nil, s.faults.incoming(ctx, msgs)
	}
	return r.deliver(ctx, s, msgs, own, offer)
}

// deliver passes on what no fault has held up.
func (r *router) deliver(ctx context.Context, s *session, msgs []wire.Msg, own, offer bool) (turn func(), err error) {
	if s.parted.Load() {
		return nil, r.givenBack(ctx, s, msgs)
	}
	// The usual batch is all for the client's own owner: it goes on as it is.
	i := 0
	for i < len(msgs) && r.forOwner(s, msgs[i]) {
		i++
	}
	if i == len(msgs) {
		if !own {
			msgs = append([]wire.Msg(nil), msgs...)
		}
		if o := r.owners.get(s.job); offer && o != nil && len(msgs) <= few {
			return o.ref.SendTurn(ctx, owner.FromClient{Client: s.id, Msgs: msgs})
		}
		return nil, r.sendOwner(ctx, s, s.job, msgs)
	}
	var run []wire.Msg
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		err := r.sendOwner(ctx, s, s.job, run)
		run = nil
		return err
	}
	for i, m := range msgs {
		if r.forOwner(s, m) {
			run = append(run, m)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		if bye, ok := m.(*wire.Bye); ok {
			r.members.part(s, bye)
			return nil, r.givenBack(ctx, s, msgs[i+1:])
		}
		if err := r.routeOther(ctx, s, m); err != nil {
			return nil, err
		}
	}
	return nil, flush()
}

// givenBack passes on what a client that has said goodbye gives back; all else is heard no more.
func (r *router) givenBack(ctx context.Context, s *session, msgs []wire.Msg) error {
	for _, m := range msgs {
		if u, ok := m.(*wire.Unpin); ok {
			if err := r.store.actor.Send(ctx, objectstore.FromClient{Client: s.id, Msg: u}); err != nil {
				return err
			}
		}
	}
	return nil
}

// forOwner tells whether a message is for the owner of the client's own job, and that one's concern alone.
func (r *router) forOwner(s *session, m wire.Msg) bool {
	to, job := route.Of(s.job, s, m)
	return to == route.Owner && job == s.job && !route.Crosses(job, m)
}

// routeOther passes on what is not for the client's own owner alone, or refuses it.
func (r *router) routeOther(ctx context.Context, s *session, m wire.Msg) error {
	switch to, job := route.Of(s.job, s, m); to {
	case route.Owner:
		if err := r.numbers.Answers(job); err != nil {
			if a := r.links.agent(job); a != nil { // what the message has of other jobs is the owner's concern
				return a.send(ctx, s.id, []wire.Msg{m})
			}
			return err
		}
		return r.sendAcross(ctx, s, job, m)
	case route.Store:
		return r.store.actor.Send(ctx, objectstore.FromClient{Client: s.id, Msg: m})
	case route.Request:
		r.requests.cold(s, m.(*wire.Request))
	case route.Stats:
		r.workerStats(s, m.(*wire.Stats))
	default:
		return errs.New(errs.CodeProtocol, "client %v sent a %v, which is the node's to send", s.id, m.Kind())
	}
	return nil
}

// few messages are stepped by the goroutine that brings them, if the owner is idle: the
// answer is what somebody waits for. Of more the owner makes a batch with those that follow.
const few = 4

// sendOwner gives a client's messages to the owner of a job, here or on the job's home. One that is in neither place has ended: the driver is told so, and
// nobody else waits for an answer any more. The store keeps a task's arguments until its end, which the node tells in the owner's place.
func (r *router) sendOwner(ctx context.Context, s *session, job ids.JobID, msgs []wire.Msg) error {
	if o := r.owners.get(job); o != nil {
		return o.ref.Send(ctx, owner.FromClient{Client: s.id, Msgs: msgs})
	}
	if a := r.links.agent(job); a != nil {
		if slices.ContainsFunc(msgs, route.OfStraightCalls) {
			msgs = s.refer(msgs)
		}
		return a.send(ctx, s.id, msgs)
	}
	switch {
	case s.role == wire.RoleTool:
		return errs.New(errs.CodeProtocol, "client %v has no job: it may send requests, not a %v", s.id, msgs[0].Kind())
	case s.role == wire.RoleDriver && s.job == job:
		r.jobs.ref.Deliver(jobs.Missed{Client: s.id, Job: job})
	}
	for _, u := range route.Ended(msgs) {
		r.store.deliver(u)
	}
	s.marked(msgs)
	return nil
}

// References go from job to job inside messages: of a worker whose actor another job calls, and of whoever got a reference so. Their owners
// hold them from before such a message is passed on until the owner that gets it has said that it holds them itself.

// sendAcross passes a message on to an owner, with the references to other jobs' objects that are in it.
func (r *router) sendAcross(ctx context.Context, s *session, job ids.JobID, m wire.Msg) error {
	if !route.Crosses(job, m) {
		return r.sendOwner(ctx, s, job, []wire.Msg{m})
	}
	refs := route.Foreign(job, m)
	owners := slices.Sorted(maps.Keys(refs))
	token := r.numbers.Epoch()<<epochShift + r.crossings.Add(1)
	for _, of := range owners {
		r.toPeer(job, of, owner.Passing{Token: token, Refs: refs[of]})
	}
	err := r.sendOwner(ctx, s, job, []wire.Msg{m})
	for _, of := range owners {
		if o := r.owners.get(job); o != nil {
			o.ref.Deliver(owner.FromOwner{Job: of, Msg: owner.Reached{Token: token}})
		} else {
			r.toPeer(job, of, owner.Arrived{Token: token})
		}
	}
	return err
}

// toPeer passes on what the owner of one job says to that of another.
func (r *router) toPeer(from, to ids.JobID, m owner.PeerMsg) {
	if r.numbers.Answers(to) != nil {
		r.far.tell(dealing.Pair{Own: from, Far: to}, m)
		return
	}
	if o := r.owners.get(to); o != nil {
		o.ref.Deliver(owner.FromOwner{Job: from, Msg: m})
		return
	}
	if owner.Asks(m) {
		r.owners.post(from, owner.FromOwner{Job: to, Msg: owner.JobGone{}})
	}
}

// workerStats notes what a worker says of itself.
func (r *router) workerStats(s *session, m *wire.Stats) {
	if m.Worn {
		_ = r.raylet.ref.Post(pool.Worn{Client: s.id}) // stopped: the node ends
	}
	r.obs.Note(s.id, m)
}
