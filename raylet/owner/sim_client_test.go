package owner

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// simClient is a driver or a worker process.
type simClient struct {
	w        *simWorld
	id       ids.ClientID
	role     wire.Role
	in       []wire.Msg
	sent     []wire.Msg // of a driver: what it repeats
	handles  map[ids.ObjectID]bool
	asked    map[ids.ObjectID]bool    // Get is out
	got      map[ids.ObjectID]outcome // and answered
	reads    map[ids.TaskID]bool      // streams
	streams  map[wire.StreamNext]bool
	items    map[wire.StreamNext]*wire.StreamItem
	lanes    map[ids.LeaseID]*simLane
	actors   map[ids.ActorID]*simActor
	watched  map[ids.ActorID]*wire.ActorNews // the last of each
	draining bool
	own      bool // an isolated process
	dead     bool
}

type simLane struct {
	lease *simLease
	queue []wire.ExecTask
	run   *simRun // the task that runs, where it takes more than one turn
}

func (l *simLane) empty() bool { return l.run == nil && len(l.queue) == 0 }

// simRun is a task in the middle.
type simRun struct {
	wire.ExecTask
	children  []ids.ObjectID
	item      uint32
	acked     uint32
	blocked   bool
	resumed   bool
	cancelled bool
}

type simActor struct {
	lease ids.LeaseID
	seen  map[ids.TaskID]uint64
	n     uint64

	onPanic wire.OnPanic
}

// store is that of its node.
func (cl *simClient) store() *simStore { return cl.w.stores[cl.id.Home()] }

func (w *simWorld) join(role wire.Role, node ids.Home) *simClient {
	w.nextID++
	cl := &simClient{
		w: w, id: ids.ClientID(node.ID(uint64(w.nextID))), role: role, handles: make(map[ids.ObjectID]bool), asked: make(map[ids.ObjectID]bool),
		got: make(map[ids.ObjectID]outcome), reads: make(map[ids.TaskID]bool), streams: make(map[wire.StreamNext]bool), items: make(map[wire.StreamNext]*wire.StreamItem),
		lanes: make(map[ids.LeaseID]*simLane), actors: make(map[ids.ActorID]*simActor), watched: make(map[ids.ActorID]*wire.ActorNews),
	}
	w.clients[cl.id] = cl
	w.post(cl.source(), ClientJoined{Client: cl.id, Role: role})
	return cl
}

// workerFor finds a process for a lease: shared ones have two lanes.
func (w *simWorld) workerFor(want *sched.Want) *simClient {
	nodes := slices.Sorted(maps.Keys(w.stores))
	node := nodes[w.rng.IntN(len(nodes))]
	if !want.Opts.Isolate {
		for _, id := range slices.Sorted(maps.Keys(w.clients)) {
			cl := w.clients[id]
			if cl.role == wire.RoleWorker && cl.id.Home() == node && !cl.own && !cl.draining && len(cl.lanes) < 2 {
				return cl
			}
		}
	}
	cl := w.join(wire.RoleWorker, node)
	cl.own = want.Opts.Isolate
	return cl
}

func (cl *simClient) source() string { return fmt.Sprintf("client %3d", cl.id) }

func (cl *simClient) send(msgs ...wire.Msg) {
	w := cl.w
	if cl.role == wire.RoleDriver {
		for _, m := range msgs {
			if id, ok := madeBy(m); ok {
				cl.sent = append(cl.sent, m)
				w.byDriver[id] = true
			}
		}
	}
	q := w.queues[cl.source()]
	if n := len(q); n > 0 && w.rng.IntN(2) == 0 {
		if b, ok := q[n-1].(FromClient); ok {
			q[n-1] = FromClient{cl.id, append(slices.Clip(b.Msgs), msgs...)}
			return
		}
	}
	w.post(cl.source(), FromClient{cl.id, msgs})
}

// die ends a worker process: what it had sent still arrives.
func (cl *simClient) die(err *errs.Error, peak uint64) {
	w := cl.w
	cl.dead = true
	delete(w.clients, cl.id)
	w.post(cl.source(), ClientGone{Client: cl.id})
	maps.DeleteFunc(cl.store().granted, func(_ simAttempt, g simGrant) bool { return g.by == cl.id })
	maps.DeleteFunc(cl.store().pins, func(_ simPin, by simPinned) bool { return by.by == cl.id })
	for _, id := range slices.Sorted(maps.Keys(cl.lanes)) {
		delete(w.sched.leases, id)
		w.post(at("sched", id.Home()), FromSched{sched.Revoked{Lease: id, Worker: cl.id, Err: err, Peak: peak}})
	}
}

func (cl *simClient) receive() {
	m := cl.in[0]
	cl.in = cl.in[1:]
	switch m := m.(type) {
	case *wire.Exec:
		l := cl.lanes[m.Lease]
		if l == nil { // returned meanwhile, because what was pushed was abandoned
			l = &simLane{lease: &simLease{id: m.Lease}}
			cl.lanes[m.Lease] = l
		}
		cl.checkActors(m)
		for _, t := range m.Tasks {
			if a := cl.actors[t.Spec.Actor]; t.Spec.Kind == wire.TaskActorCall && (a == nil || a.lease != m.Lease) { // its instance has ended
				cl.send(&wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: m.Lease, Err: errs.New(errs.CodeActorUnavailable, "it is not here"), Times: wire.Times{Ended: cl.w.now}})
				continue
			}
			l.queue = append(l.queue, t)
		}
	case simReceipt:
		cl.w.post("node", ClientRead{Client: cl.id, Bytes: int64(m)})
	case *wire.Resolved:
		if !cl.asked[m.ID] {
			return
		}
		delete(cl.asked, m.ID)
		cl.got[m.ID] = cl.read(m)
	case *wire.StreamItem:
		k := nextOf(m.Task, m.Index)
		if !cl.streams[k] {
			return
		}
		delete(cl.streams, k)
		cl.items[k] = m
		if m.Result.Kind == wire.ResultInline || m.Result.Kind == wire.ResultStored {
			cl.addRef(m.Task.Return(int(m.Index)))
		}
	case *wire.StreamAck:
		for _, l := range cl.lanes {
			if l.run != nil && l.run.Spec.ID == m.Task {
				l.run.acked = m.Consumed
			}
		}
	case *wire.CancelTask:
		cl.cancelTask(m)
	case *wire.StopActor:
		cl.stopActor(m.Actor)
		if m.Close && cl.w.rng.IntN(8) > 0 { // else it takes too long
			cl.send(&wire.ActorStopped{Actor: m.Actor})
		}
	case *wire.ActorNews:
		cl.hear(m)
	case *wire.Resume:
		for _, l := range cl.lanes {
			if l.run != nil && l.run.Spec.ID == m.Task && l.run.waiting() {
				l.run.resumed = true
			}
		}
	case *wire.Resync:
		if m.Component == wire.ComponentOwner && !(cl.role == wire.RoleWorker && m.Epoch != 0 && cl.w.rng.Float64() < cl.w.silent) {
			if cl.role == wire.RoleDriver && m.Epoch != 0 && cl.w.rng.IntN(2) == 0 && !cl.w.cfg.VolatileLog {
				cl.replay() // it has found its node again
			}
			cl.declare(m.Epoch)
		}
	case *wire.Bye:
		cl.die(errs.New(errs.CodeWorkerCrashed, "it was told to go"), 0)
	}
}

// checkActors checks that calls name the actor that their lease is for: a worker knows no other id of it.
func (cl *simClient) checkActors(m *wire.Exec) {
	for id, a := range cl.actors {
		for _, t := range m.Tasks {
			if a.lease == m.Lease && t.Spec.Kind == wire.TaskActorCall && t.Spec.Actor != id {
				cl.w.t.Fatalf("a call to actor %v names it %v", id, t.Spec.Actor)
			}
		}
	}
}

// hear notes what is told of an actor that it watches. The dead stay dead, and restarts are not taken back.
func (cl *simClient) hear(m *wire.ActorNews) {
	old := cl.watched[m.Actor]
	if old.State == wire.ActorDead && m.State != wire.ActorDead || m.State != wire.ActorDead && m.Restarts < old.Restarts {
		cl.w.t.Fatalf("actor %v was %+v and is %+v", m.Actor, old, m)
	}
	cl.watched[m.Actor] = m
}

// read takes a value with the references in it.
func (cl *simClient) read(m *wire.Resolved) outcome {
	switch m.Result.Kind {
	case wire.ResultError:
		for _, id := range m.Result.Err.AllRefs() {
			cl.addRef(id)
		}
		return outcome{err: m.Result.Err.Code}
	case wire.ResultStored:
		for _, id := range m.Result.Value.Refs {
			cl.addRef(id)
		}
		return outcome{val: m.Extent.Off}
	}
	for _, id := range m.Result.Value.Refs {
		cl.addRef(id)
	}
	return outcome{val: valueOf(m.Result.Value.Data)}
}

func (cl *simClient) addRef(id ids.ObjectID) {
	if !cl.handles[id] {
		cl.handles[id] = true
		cl.send(&wire.AddRef{ID: id})
	}
}

func (cl *simClient) get(id ids.ObjectID) {
	if _, ok := cl.got[id]; !ok && !cl.asked[id] {
		cl.asked[id] = true
		cl.send(&wire.Get{ID: id, Fetch: true})
	}
}

func (cl *simClient) release(list ...ids.ObjectID) {
	var out []ids.ObjectID
	for _, id := range list {
		if cl.handles[id] {
			delete(cl.handles, id)
			delete(cl.got, id)
			delete(cl.asked, id)
			out = append(out, id)
		}
	}
	if len(out) > 0 {
		cl.send(&wire.Release{IDs: out})
	}
}

func (cl *simClient) submit(s *wire.TaskSpec) {
	if s.Opts.NumReturns == wire.Streaming {
		cl.reads[s.ID] = true
	}
	for i := range max(s.Opts.NumReturns, 0) {
		cl.handles[s.ID.Return(int(i))] = true
	}
	cl.send(&wire.Submit{Spec: s})
}

// replay repeats what a driver has sent, as one does that finds its node again.
func (cl *simClient) replay() {
	again := cl.sent
	cl.sent = nil
	cl.declare(0)
	cl.send(again...)
}

func (cl *simClient) declare(epoch uint64) {
	h := &wire.Holdings{Component: wire.ComponentOwner, Epoch: epoch}
	h.Handles = slices.SortedFunc(maps.Keys(cl.handles), ids.ObjectID.Compare)
	for id := range cl.reads {
		h.Handles = append(h.Handles, id.Stream())
	}
	for _, id := range slices.SortedFunc(maps.Keys(cl.asked), ids.ObjectID.Compare) {
		h.Gets = append(h.Gets, wire.Get{ID: id, Fetch: true})
	}
	for k := range cl.streams {
		h.Streams = append(h.Streams, k)
	}
	for _, id := range slices.Sorted(maps.Keys(cl.lanes)) {
		l := cl.lanes[id]
		if l.run != nil {
			h.Tasks = append(h.Tasks, wire.Attempt{Task: l.run.Spec.ID, Attempt: l.run.Attempt, Lease: id, Blocked: l.run.blocked, Asks: l.run.blocked && l.run.waiting() && !l.run.resumed})
		}
		for _, t := range l.queue {
			h.Tasks = append(h.Tasks, wire.Attempt{Task: t.Spec.ID, Attempt: t.Attempt, Lease: id})
		}
	}
	for id := range cl.actors {
		h.Actors = append(h.Actors, id)
	}
	cl.send(h)
	for _, id := range slices.SortedFunc(maps.Keys(cl.watched), func(a, b ids.ActorID) int { return bytes.Compare(a[:], b[:]) }) {
		cl.send(&wire.WatchActor{Actor: id})
	}
}

// stopActor ends an instance, and with it the calls that wait for it: the next instance may be in
// this very process.
func (cl *simClient) stopActor(id ids.ActorID) {
	delete(cl.actors, id)
	why := errs.New(errs.CodeActorDied, "actor %v was stopped", id)
	for _, lease := range slices.Sorted(maps.Keys(cl.lanes)) {
		l := cl.lanes[lease]
		of := func(t wire.ExecTask) bool { return t.Spec.Kind == wire.TaskActorCall && t.Spec.Actor == id }
		var stopped []wire.ExecTask
		var rest []wire.ExecTask
		for _, t := range l.queue {
			if of(t) {
				stopped = append(stopped, t)
			} else {
				rest = append(rest, t)
			}
		}
		l.queue = rest
		if l.run != nil && of(l.run.ExecTask) {
			cl.letGo(l.run)
			cl.done(l, l.run, nil, why)
		}
		for _, t := range stopped {
			cl.send(&wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: lease, Err: why})
		}
		if l.empty() && cl.w.sched.leases[lease] == nil {
			delete(cl.lanes, lease)
		}
	}
}

// breakActor ends an instance by a panic of the call that runs, or only the call if the actor resumes.
func (cl *simClient) breakActor(l *simLane, r *simRun) {
	id, lease, n := r.Spec.Actor, l.lease.id, cl.w.now
	cl.letGo(r)
	l.run = nil
	broke := cl.actors[id].onPanic != wire.PanicResumes
	msgs := []wire.Msg{&wire.Done{Task: r.Spec.ID, Attempt: r.Attempt, Lease: lease, Items: r.item, Err: boom(), Broke: broke, Times: wire.Times{Started: n, Ended: n}}}
	if broke {
		for _, t := range l.queue {
			msgs = append(msgs, &wire.Done{Task: t.Spec.ID, Attempt: t.Attempt, Lease: lease, Err: gone(), Times: wire.Times{Ended: n}})
		}
		l.queue = nil
		delete(cl.actors, id)
		msgs = append(msgs, &wire.ActorStopped{Actor: id, Lease: lease, Err: boom()})
	}
	cl.send(msgs...)
}

func (cl *simClient) cancelTask(m *wire.CancelTask) {
	for id, l := range cl.lanes {
		for i, t := range l.queue {
			if t.Spec.ID == m.Task {
				l.queue = slices.Delete(slices.Clone(l.queue), i, i+1)
				cl.send(&wire.Done{Task: m.Task, Attempt: t.Attempt, Lease: id, Err: errs.New(errs.CodeCancelled, "it was cancelled")})
				return
			}
		}
		if r := l.run; r != nil && r.Spec.ID == m.Task {
			if m.Abandon {
				cl.letGo(r)
				cl.done(l, r, nil, errs.New(errs.CodeCancelled, "it was abandoned"))
			} else {
				r.cancelled = true
			}
		}
	}
}

// canRun tells whether the process could go on with something.
func (cl *simClient) canRun() bool {
	if cl.draining && cl.idle() {
		return true
	}
	for _, l := range cl.lanes {
		if l.run != nil && cl.canGoOn(l.run) || l.run == nil && len(l.queue) > 0 {
			return true
		}
	}
	return false
}

func (cl *simClient) idle() bool {
	for _, l := range cl.lanes {
		if !l.empty() {
			return false
		}
	}
	return true
}

// run lets one lane go on.
func (cl *simClient) run() {
	if cl.draining && cl.idle() {
		cl.die(errs.New(errs.CodeWorkerCrashed, "it was drained"), 0)
		return
	}
	var can []*simLane
	for _, id := range slices.Sorted(maps.Keys(cl.lanes)) {
		l := cl.lanes[id]
		if l.run != nil && cl.canGoOn(l.run) || l.run == nil && len(l.queue) > 0 {
			can = append(can, l)
		}
	}
	l := can[cl.w.rng.IntN(len(can))]
	if l.run == nil {
		i := 0
		if cl.w.anyOrder && l.queue[0].Spec.Kind == wire.TaskActorCall {
			i = cl.w.rng.IntN(len(l.queue))
		}
		l.run = &simRun{ExecTask: l.queue[i]}
		l.queue = slices.Delete(slices.Clone(l.queue), i, i+1)
		cl.w.runs[l.run.Spec.ID]++
	}
	cl.goOn(l, l.run)
}

// simReceipt is a Receipt in the queue of what a client is sent.
type simReceipt int64

func (simReceipt) Kind() wire.Kind { return 0 }
