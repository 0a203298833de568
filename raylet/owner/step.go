package owner

import (
	"strconv"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/cluster"
	"mobula/raylet/sched"
	"mobula/wire"
)

func (s *step) toClient(cl *clientRec, m wire.Msg) {
	if cl.gone {
		return
	}
	if cl.peer != 0 { // of all that clients are told, only this is for owners
		if r, ok := m.(*wire.Resolved); ok {
			s.toOwner(cl.peer, Words{r})
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

func (s *step) toStore(m objectstore.Event) { s.toStoreAt(s.home(), m) }

func (s *step) toStoreAt(node ids.Home, m objectstore.Event) {
	s.effects = append(s.effects, Effect{Kind: ToStore, Node: node, msg: m})
}

func (s *step) toSched(m sched.Event) {
	s.effects = append(s.effects, Effect{Kind: ToSched, msg: m})
}

func (s *step) toCluster(m cluster.Event) {
	s.effects = append(s.effects, Effect{Kind: ToCluster, msg: m})
}

func (s *step) toDirectory(m DirectoryAsk) {
	s.effects = append(s.effects, Effect{Kind: ToDirectory, msg: m})
}

func (s *step) toOwner(job ids.JobID, m PeerMsg) {
	s.effects = append(s.effects, Effect{Kind: ToOwner, Job: job, msg: m})
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
