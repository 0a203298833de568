package cluster

import (
	"maps"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// owner is what the cluster sees of a job's owner: it runs a task at a time on each of its leases, and says what it wants by the rules of package
// owner.
type owner struct {
	w       *world
	job     ids.JobID
	at      *member
	classes []*tasks
	leases  map[ids.LeaseID]*slot
	past    map[ids.LeaseID]bool // over; after a restart they may be told again
	had     map[ids.LeaseID]bool
	epoch   uint64
}

// tasks are those of a class.
type tasks struct {
	key        sched.ClassKey
	opts       *wire.TaskOptions
	need       []wire.Resource
	ready      int
	told       int
	told0      bool // the last Want was not zero
	ran        int
	failed     int
	infeasible *errs.Error
}

// slot is a lease that an owner holds.
type slot struct {
	of      *tasks
	worker  ids.ClientID
	busy    bool
	blocked bool
	asked   bool // UnblockCPU is out
	closing bool
}

func (w *world) newOwner(m *member, n uint64, opts ...*wire.TaskOptions) *owner {
	o := &owner{w: w, job: ids.JobID(m.id.ID(n)), at: m, leases: map[ids.LeaseID]*slot{}, past: map[ids.LeaseID]bool{}, had: map[ids.LeaseID]bool{}}
	for i, opt := range opts {
		need, _, err := sched.Asked(opt, wire.TaskNormal)
		if err != nil {
			w.t.Fatal(err)
		}
		o.classes = append(o.classes, &tasks{key: sched.ClassKey{Job: o.job, Class: sched.Class(i + 1)}, opts: opt, need: need})
	}
	w.owners[o.job] = o
	return o
}

func (o *owner) say(ev sched.Event) {
	o.w.post(o.job.String(), o.at.name(), func() { o.w.stepCore(o.at, FromOwner{o.job, ev}) })
}

func (o *owner) submit(k *tasks, n int) {
	o.w.note("owner %v: %d tasks of %v", o.job, n, k.key.Class)
	o.enqueue(k, n)
}

// enqueue takes tasks that come or run again.
func (o *owner) enqueue(k *tasks, n int) {
	if k.infeasible != nil {
		k.failed += n
		return
	}
	k.ready += n
	o.flush(k)
}

// flush gives idle leases tasks, and says what is wanted.
func (o *owner) flush(k *tasks) {
	for _, id := range o.sorted() {
		if l := o.leases[id]; l.of == k && !l.busy && !l.closing && k.ready > 0 {
			l.busy = true
			k.ready--
		}
	}
	n := k.ready
	if n == 0 && !k.told0 || n != 0 && k.told != 0 && n < 2*k.told && 2*n > k.told {
		return
	}
	k.told, k.told0 = n, n > 0
	o.say(sched.Want{Key: k.key, Opts: k.opts, Backlog: n})
}

func (o *owner) sorted() []ids.LeaseID { return slices.Sorted(maps.Keys(o.leases)) }

func (o *owner) giveBack(id ids.LeaseID) {
	o.drop(id)
	o.say(sched.Return{Lease: id})
}

func (o *owner) drop(id ids.LeaseID) {
	delete(o.leases, id)
	delete(o.w.held, id)
	o.past[id] = true
}

// nodeGone ends what the job had on a node, before the core says so: one that was rebuilt may not know of it.
func (o *owner) nodeGone(id ids.Home) {
	o.w.note("owner %v: node %v is gone", o.job, id)
	o.lose(func(lease ids.LeaseID) bool { return lease.Home() == id })
}

// lose ends leases whose workers are gone. Their tasks run again.
func (o *owner) lose(those func(ids.LeaseID) bool) {
	for _, id := range o.sorted() {
		if l := o.leases[id]; those(id) {
			o.drop(id)
			o.enqueue(l.of, bit(l.busy))
		}
	}
}

// workersEnded tells an owner that its workers on a node are gone, up to those of a lease, as their connections say: what it holds of them is over.
func (w *world) workersEnded(m *member, job ids.JobID, node ids.Home, last ids.LeaseID) {
	w.post(m.name(), job.String(), func() {
		if o := w.owners[job]; o != nil {
			o.lose(func(id ids.LeaseID) bool { return id.Home() == node && id <= last })
		}
	})
}

// giveUp ends what the job has on a node that does not answer, and lives.
func (o *owner) giveUp(m *member) {
	o.nodeGone(m.id)
	o.w.post(o.job.String(), o.at.name(), func() {
		if at := o.w.nodes[m.id]; at != nil { // another life may have begun
			at.closed[o.job] = at.last // the owner may hold what it was granted since
		}
		o.w.stepCore(o.at, JobAbandoned{m.id, o.job})
	})
}

func (o *owner) finish(id ids.LeaseID) {
	l := o.leases[id]
	l.busy, l.blocked, l.asked = false, false, false
	l.of.ran++
	if l.closing {
		o.giveBack(id)
	}
	o.flush(l.of)
}

func (o *owner) handle(m sched.OwnerMsg) {
	w := o.w
	w.note("owner %v: %T%+v", o.job, m, m)
	switch m := m.(type) {
	case sched.Granted:
		o.granted(m)
	case sched.Reclaim:
		if l := o.leases[m.Lease]; l != nil {
			if l.closing = true; !l.busy {
				o.giveBack(m.Lease)
			}
		}
	case sched.Revoked:
		l := o.leases[m.Lease]
		if l == nil {
			if !o.had[m.Lease] && o.epoch == 0 {
				w.failf("owner %v loses lease %v, which it never had", o.job, m.Lease)
			}
			return
		}
		if n := w.nodes[m.Lease.Home()]; n != nil && n.gave(o.job, m.Lease) {
			w.failf("owner %v loses lease %v of a node that lives", o.job, m.Lease)
		}
		o.drop(m.Lease)
		o.enqueue(l.of, bit(l.busy))
	case sched.Resumed:
		if l := o.leases[m.Lease]; l != nil {
			l.blocked, l.asked = false, false
		}
	case sched.Infeasible:
		o.infeasible(o.classes[m.Key.Class-1], m.Err)
	case sched.Feasible:
		k := o.classes[m.Key.Class-1]
		k.infeasible, k.told, k.told0 = nil, 0, false
		o.flush(k)
	case sched.Resync:
		o.resync(m.Epoch)
	}
}

func (o *owner) granted(m sched.Granted) {
	w := o.w
	if m.Epoch != 0 && m.Epoch != o.epoch || o.leases[m.Lease] != nil && m.Epoch != 0 {
		return
	}
	if o.past[m.Lease] {
		if o.epoch == 0 {
			w.failf("owner %v is granted lease %v again", o.job, m.Lease)
		}
		o.say(sched.Return{Lease: m.Lease})
		return
	}
	if by, held := w.held[m.Lease]; held {
		w.failf("lease %v is granted to owner %v and held by %v", m.Lease, o.job, by)
	}
	w.held[m.Lease], o.had[m.Lease] = o.job, true
	k := o.classes[m.Key.Class-1]
	if m.Epoch == 0 && k.opts.Spread {
		w.post(o.job.String(), o.at.name(), func() { w.stepCore(o.at, Heard{o.job, m.Lease}) })
	}
	o.leases[m.Lease] = &slot{of: k, worker: m.Worker, blocked: m.Blocked, busy: m.Blocked}
	k.told = max(k.told-1, 0)
	o.flush(k)
}

// infeasible fails what waits.
func (o *owner) infeasible(k *tasks, err *errs.Error) {
	if err.Code == errs.CodeRuntimeSetup {
		err = nil
	}
	k.infeasible = err
	if k.failed += k.ready; k.told0 { // a number may have crossed with this
		o.say(sched.Want{Key: k.key, Opts: k.opts})
	}
	k.ready, k.told, k.told0 = 0, 0, false
}

func (o *owner) resync(epoch uint64) {
	h := sched.Holdings{Job: o.job, Epoch: epoch, Restarted: o.epoch}
	for _, id := range o.sorted() {
		l := o.leases[id]
		held := sched.Held{Lease: id, Key: l.of.key, Opts: l.of.opts, Worker: l.worker, Blocked: l.blocked}
		if l.asked {
			held.Ask = sched.Ask{Nth: 1}
		}
		h.Held = append(h.Held, held)
	}
	for _, k := range o.classes {
		if k.told, k.told0 = k.ready, k.ready > 0; k.told0 || k.infeasible != nil {
			h.Wants = append(h.Wants, sched.Want{Key: k.key, Opts: k.opts, Backlog: k.ready})
		}
	}
	o.say(h)
}

// restart makes the owner forget its leases. What ran on them it knows by its workers; here it has ended.
func (o *owner) restart() {
	o.w.note("owner %v restarts", o.job)
	for _, id := range o.sorted() {
		if l := o.leases[id]; l.busy {
			l.of.ran++
		}
		delete(o.leases, id)
		delete(o.w.held, id)
	}
	for _, k := range o.classes {
		k.told, k.told0 = 0, false
	}
	o.w.epoch++
	o.epoch = o.w.epoch
	o.say(sched.OwnerRestarted{Job: o.job, Epoch: o.epoch})
	for _, k := range o.classes {
		o.flush(k)
	}
}

// end ends the owner with its node.
func (o *owner) end() {
	for id := range o.leases {
		delete(o.w.held, id)
	}
	delete(o.w.owners, o.job)
}
