package node

import (
	"context"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/wire"
)

// route passes a client's batch on, in order for each who gets part of it. It reports
// backpressure by waiting, and ctx's end. It keeps msgs if own, and then, if they are few
// and the owner is idle, the owner's turn runs here.
func (n *Node) route(ctx context.Context, s *session, msgs []wire.Msg, own bool) error {
	turn, err := n.pass(ctx, s, msgs, own, own)
	if turn != nil {
		turn()
	}
	return err
}

// pass is route that may leave the owner's turn to the caller: with offer, who must call it.
func (n *Node) pass(ctx context.Context, s *session, msgs []wire.Msg, own, offer bool) (turn func(), err error) {
	if s.faults != nil {
		return nil, s.faults.incoming(ctx, msgs)
	}
	return n.deliver(ctx, s, msgs, own, offer)
}

// deliver passes on what no fault has held up.
func (n *Node) deliver(ctx context.Context, s *session, msgs []wire.Msg, own, offer bool) (turn func(), err error) {
	if s.parted.Load() {
		return nil, n.givenBack(ctx, s, msgs)
	}
	// The usual batch is all for the client's own owner: it goes on as it is.
	i := 0
	for i < len(msgs) && n.forOwner(s, msgs[i]) {
		i++
	}
	if i == len(msgs) {
		if !own {
			msgs = append([]wire.Msg(nil), msgs...)
		}
		if o := n.jobs.get(s.job); offer && o != nil && len(msgs) <= few {
			return o.ref.SendTurn(ctx, owner.FromClient{Client: s.id, Msgs: msgs})
		}
		return nil, n.sendOwner(ctx, s, s.job, msgs)
	}
	var run []wire.Msg
	flush := func() error {
		if len(run) == 0 {
			return nil
		}
		err := n.sendOwner(ctx, s, s.job, run)
		run = nil
		return err
	}
	for i, m := range msgs {
		if n.forOwner(s, m) {
			run = append(run, m)
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
		if bye, ok := m.(*wire.Bye); ok {
			n.part(s, bye)
			return nil, n.givenBack(ctx, s, msgs[i+1:])
		}
		if err := n.routeOther(ctx, s, m); err != nil {
			return nil, err
		}
	}
	return nil, flush()
}

// givenBack passes on what a client that has said goodbye gives back; all else is heard no more.
func (n *Node) givenBack(ctx context.Context, s *session, msgs []wire.Msg) error {
	for _, m := range msgs {
		if u, ok := m.(*wire.Unpin); ok {
			if err := n.store.Send(ctx, objectstore.FromClient{Client: s.id, Msg: u}); err != nil {
				return err
			}
		}
	}
	return nil
}

// few messages are stepped by the goroutine that brings them, if the owner is idle: the
// answer is what somebody waits for. Of more the owner makes a batch with those that follow.
const few = 4

func (n *Node) sendOwner(ctx context.Context, s *session, job ids.JobID, msgs []wire.Msg) error {
	o := n.jobs.get(job)
	if o == nil {
		if s.role == wire.RoleDriver && s.job == job {
			s.Push(n.jobOver(job))
			s.Flush()
		}
		return nil // else nobody waits for an answer any more
	}
	return o.ref.Send(ctx, owner.FromClient{Client: s.id, Msgs: msgs})
}

// ownerOf is the job whose owner a message is for; not ok: it is for no owner.
func ownerOf(s *session, m wire.Msg) (job ids.JobID, ok bool) {
	switch m := m.(type) {
	case *wire.Create, *wire.Abort, *wire.Unpin, *wire.Request, *wire.Stats, *wire.Hello, *wire.Bye:
		return 0, false
	case *wire.Holdings:
		return s.asker(m), m.Component == wire.ComponentOwner
	case *wire.Done:
		return m.Task.Job(), true
	case *wire.StreamItem:
		return m.Task.Job(), true
	case *wire.Blocked:
		return blockedJob(m), true
	case *wire.Unblocked:
		return m.Task.Job(), true
	case *wire.Seal:
		return m.ID.Job(), true
	}
	return s.job, true
}

// forOwner tells whether a message is for the owner of the client's own job, and that one's concern alone.
func (n *Node) forOwner(s *session, m wire.Msg) bool {
	job, ok := ownerOf(s, m)
	return ok && job == s.job && !crosses(job, m)
}

func (n *Node) routeOther(ctx context.Context, s *session, m wire.Msg) error {
	if job, ok := ownerOf(s, m); ok {
		return n.sendAcross(ctx, s, job, m)
	}
	switch m := m.(type) {
	case *wire.Holdings, *wire.Create, *wire.Abort, *wire.Unpin:
		return n.store.Send(ctx, objectstore.FromClient{Client: s.id, Msg: m})
	case *wire.Request:
		n.cold(s, m)
	case *wire.Stats:
		n.workerStats(s, m)
	}
	return nil
}

// blockedJob is the job whose tasks a Blocked is about; it may be only about those given back.
func blockedJob(m *wire.Blocked) ids.JobID {
	if m.Task.IsZero() && len(m.Returned) > 0 {
		return m.Returned[0].Job()
	}
	return m.Task.Job()
}
