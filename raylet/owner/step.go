package owner

import (
	"strconv"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

func (s *step) toClient(cl *clientRec, m wire.Msg) {
	if cl.gone {
		return
	}
	if cl.peer != 0 { // of all that clients are told, only this is for owners
		if r, ok := m.(*wire.Resolved); ok {
			s.toOwner(cl.peer, r)
		}
		return
	}
	s.effects = append(s.effects, Effect{Kind: ToClient, Client: cl.id, Wire: m})
}

// home is the job's own node.
func (s *step) home() ids.Home { return s.cfg.Job.Home() }

// nodeOf is the node of a client; the owner of another job answers for its objects by its own.
func (s *step) nodeOf(cl *clientRec) ids.Home {
	if cl.peer != 0 {
		return s.home()
	}
	return cl.id.Home()
}

func (s *step) toStore(m any) { s.toStoreAt(s.home(), m) }

func (s *step) toStoreAt(node ids.Home, m any) {
	s.effects = append(s.effects, Effect{Kind: ToStore, Node: node, Msg: m})
}

func (s *step) toSched(m any) {
	s.effects = append(s.effects, Effect{Kind: ToSched, Msg: m})
}

func (s *step) toDirectory(m any) {
	s.effects = append(s.effects, Effect{Kind: ToDirectory, Msg: m})
}

func (s *step) toOwner(job ids.JobID, m any) {
	s.effects = append(s.effects, Effect{Kind: ToOwner, Job: job, Msg: m})
}

func utoa(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }

// wrappedCause gives what the error of a dead actor wraps: what its program did, or what it was ended for. That its process or a
// connection is gone the message tells: ErrWorkerCrashed is of tasks, and what is lost or unavailable may come back.
func wrappedCause(err *errs.Error) []*errs.Error {
	switch err.Code {
	case errs.CodeWorkerCrashed, errs.CodeDisconnected, errs.CodeActorUnavailable, errs.CodeUnknown:
		var out []*errs.Error
		for _, c := range err.Cause {
			out = append(out, wrappedCause(c)...)
		}
		return out
	}
	return []*errs.Error{err}
}
