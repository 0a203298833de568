package owner

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
)

// simSched grants leases of a few slots, fairly, on worker processes of two lanes.
type simSched struct {
	w        *simWorld
	slots    int
	wants    []sched.Want
	leases   map[ids.LeaseID]*simLease
	next     ids.LeaseID
	restarts uint64
	epoch    uint64 // of a restart whose Holdings are out; 0: none
	granted  map[sched.Class]int
}

type simLease struct {
	id      ids.LeaseID
	key     sched.ClassKey
	worker  *simClient
	up      bool
	blocked bool
	asked   bool // Reclaim is out
}

func newSimSched(w *simWorld, slots int) *simSched {
	return &simSched{w: w, slots: slots, leases: make(map[ids.LeaseID]*simLease), granted: make(map[sched.Class]int)}
}

func (s *simSched) used() int {
	n := 0
	for _, l := range s.leases {
		if !l.up && !l.blocked {
			n++
		}
	}
	return n
}

func (s *simSched) held() int { return len(s.leases) }

func (s *simSched) canGrant() bool {
	return s.epoch == 0 && len(s.wants) > 0 && (s.used() < s.slots || s.reclaimable() != nil)
}

func (s *simSched) reclaimable() *simLease {
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		l := s.leases[id]
		if !l.asked && !l.up && !l.blocked && l.key != s.wants[0].Key {
			return l
		}
	}
	return nil
}

func (s *simSched) grant() {
	w := s.w
	if s.used() >= s.slots {
		l := s.reclaimable()
		l.asked = true
		w.post(at("sched", l.id.Home()), FromSched{sched.Reclaim{Lease: l.id}})
		return
	}
	want := &s.wants[0]
	s.next++
	by := w.workerFor(want)
	l := &simLease{id: ids.LeaseID(by.id.Home().ID(uint64(s.next))), key: want.Key, worker: by}
	s.leases[l.id] = l
	l.worker.lanes[l.id] = &simLane{lease: l}
	s.granted[want.Key.Class]++
	w.post(at("sched", l.id.Home()), FromSched{sched.Granted{Key: want.Key, Lease: l.id, Worker: l.worker.id}})
	first := *want
	s.wants = s.wants[1:]
	first.Backlog = max(first.Backlog-1, 1) // until it is told that nothing is left
	s.wants = append(s.wants, first)
}

func (s *simSched) handle(m any) {
	w := s.w
	if _, ok := m.(sched.Holdings); s.epoch != 0 && !ok {
		switch m.(type) {
		case sched.OwnerRestarted:
			w.post("sched", FromSched{sched.Resync{Epoch: s.epoch}})
		case sched.DrainWorker: // the pool is told later
		default:
			return
		}
	}
	switch m := m.(type) {
	case sched.Holdings:
		s.holdings(m)
	case sched.Want:
		s.wants = slices.DeleteFunc(s.wants, func(x sched.Want) bool { return x.Key == m.Key })
		if m.Backlog > 0 {
			s.wants = append(s.wants, m)
		}
	case sched.Return:
		if l := s.leases[m.Lease]; l != nil {
			delete(s.leases, l.id)
			if lane := l.worker.lanes[l.id]; lane != nil && lane.empty() { // else what is there ends when the worker hears of it
				delete(l.worker.lanes, l.id)
			}
		}
	case sched.DropJob:
		s.wants = nil
		for id, l := range s.leases {
			delete(s.leases, id)
			delete(l.worker.lanes, id)
		}
	case sched.BlockCPU:
		if l := s.leases[m.Lease]; l != nil {
			l.blocked = true
		}
	case sched.UnblockCPU:
		if l := s.leases[m.Lease]; l != nil && l.blocked {
			l.blocked = false
			w.post(at("sched", l.id.Home()), FromSched{sched.Resumed{Lease: l.id, Ask: m.Ask}})
		}
	case sched.ActorUp:
		if l := s.leases[m.Lease]; l != nil {
			l.up = true
		}
	case sched.DrainWorker:
		if cl := w.clients[m.Worker]; cl != nil {
			cl.draining = true
		}
	case sched.OwnerRestarted:
		s.wants = nil
		for _, id := range slices.Sorted(maps.Keys(s.leases)) {
			l := s.leases[id]
			w.post(at("sched", l.id.Home()), FromSched{sched.Granted{Key: l.key, Lease: l.id, Worker: l.worker.id, Up: l.up, Blocked: l.blocked, Epoch: m.Epoch}})
			l.asked = false
		}
	}
}

// restart rebuilds the scheduler: what it knew is forgotten but for the workers' ends.
func (s *simSched) restart() {
	s.wants, s.leases = nil, make(map[ids.LeaseID]*simLease)
	for _, node := range slices.Sorted(maps.Keys(s.w.stores)) {
		var gone []Event
		for _, ev := range s.w.queues[at("sched", node)] {
			if f, ok := ev.(FromSched); ok {
				if _, ok := f.Msg.(sched.Revoked); ok {
					gone = append(gone, ev)
				}
			}
		}
		s.w.queues[at("sched", node)] = gone
	}
	s.restarts++
	s.epoch = s.restarts
	s.w.post("sched", FromSched{sched.Resync{Epoch: s.epoch}})
}

// holdings takes over what the owner says it has.
func (s *simSched) holdings(m sched.Holdings) {
	if m.Epoch != s.epoch {
		return
	}
	s.epoch = 0
	w := s.w
	for _, h := range m.Held {
		cl := w.clients[h.Worker]
		if cl == nil {
			w.post(at("sched", h.Lease.Home()), FromSched{sched.Revoked{Lease: h.Lease, Worker: h.Worker, Err: errs.New(errs.CodeWorkerCrashed, "it ended while the scheduler restarted")}})
			continue
		}
		l := &simLease{id: h.Lease, key: h.Key, worker: cl, up: h.Up, blocked: h.Blocked}
		s.leases[l.id] = l
		if lane := cl.lanes[l.id]; lane != nil {
			lane.lease = l
		} else {
			cl.lanes[l.id] = &simLane{lease: l}
		}
		if h.Ask != (sched.Ask{}) {
			l.blocked = false
			w.post(at("sched", l.id.Home()), FromSched{sched.Resumed{Lease: l.id, Ask: h.Ask}})
		}
	}
	for _, cl := range w.clients {
		for id, lane := range cl.lanes {
			if s.leases[id] == nil && lane.empty() {
				delete(cl.lanes, id)
			}
		}
	}
	s.wants = m.Wants
}
