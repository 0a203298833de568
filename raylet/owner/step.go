package owner

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// step is what every part has in common: the configuration, how far the job is, and the time and the output of the step under way.
type step struct {
	cfg   Config
	now   int64 // of the step, Unix ns
	epoch uint64

	recovering bool // waits for its clients to say what they hold
	lenient    bool // callers' sequences may begin anywhere: this core was rebuilt
	orphan     bool // the last driver is gone
	ended      bool // and with it the job: no detached actor is left
	stopped    bool // the node stops: nothing is taken in any more

	effects []Effect // the first is for the log
	changes []Transition
	stats   Counters
	timers  timerHeap
	armed   int64 // when the last After is due; 0: none
}

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

func (s *step) toStore(m any) {
	s.effects = append(s.effects, Effect{Kind: ToStore, Msg: m})
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
