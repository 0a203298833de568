package world

import (
	"maps"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/record"
	"mobula/wire"
)

// model is what must be true, whatever happens: what each object has to be, who has a CPU, which attempt was accepted.
type model struct {
	want      map[ids.ObjectID]*expectation
	handles   map[ids.ObjectID]int         // held in all processes
	made      map[ids.ObjectID]attempt     // as it was seen last, while somebody holds the object
	at        map[ids.ObjectID][]writing   // where it was written, the last one last
	unwanted  map[ids.ObjectID][]writing   // of these, what owners have had dropped
	puts      map[ids.ObjectID]uint64      // by tasks: their values
	rot       map[ids.ObjectID]bool        // a copy was spoiled
	blocks    bool                         // one of a block of packed values was
	rebuilt   map[ids.JobID]bool           // whose owner was
	calls     map[uint64]ids.ObjectID      // by result: which call of an actor gave it
	had       map[ids.TaskID]bool          // calls of which the caller has the result
	again     map[begun]bool               // attempts at such calls that were sent since
	running   map[*Node]map[*call]struct{} // tasks that have a CPU
	abandoned map[ids.TaskID]bool          // of which an owner has said so since it sent them last
	forgotten map[ids.JobID]bool           // whose node was killed before their logs had taken all records: the disk was full
	submits   map[ids.TaskID]int
	callers   map[ids.TaskID]ids.TaskID // who has submitted a task
	unmade    map[ids.ObjectID]bool     // puts, and tasks, which were dropped, or may fail with one that was
	instances uint64
	gets      int
	began     int // attempts
	deaths    int // of processes
	moved     int // records of owners' logs
	shared    int // reads of objects of other nodes' jobs that gave a value
	passed    int // of these, of references that came in a value of a further job
	disturbed int64
}

// expectation is what an object has to be.
type expectation struct {
	val  uint64
	err  errs.Code
	deps []ids.ObjectID // what it is made of
	may  bool           // it was cancelled, or lost for good: an error will do
	any  bool           // any value will do
	item bool           // it came from a stream
}

// attempt is which attempt has made a value.
type attempt struct{ a, b byte }

func newModel() *model {
	return &model{
		want: make(map[ids.ObjectID]*expectation), handles: make(map[ids.ObjectID]int), made: make(map[ids.ObjectID]attempt), rot: make(map[ids.ObjectID]bool), rebuilt: make(map[ids.JobID]bool),
		at: make(map[ids.ObjectID][]writing), unwanted: make(map[ids.ObjectID][]writing), puts: make(map[ids.ObjectID]uint64), forgotten: make(map[ids.JobID]bool), submits: make(map[ids.TaskID]int), callers: make(map[ids.TaskID]ids.TaskID), unmade: make(map[ids.ObjectID]bool), calls: make(map[uint64]ids.ObjectID), had: make(map[ids.TaskID]bool), again: make(map[begun]bool), running: make(map[*Node]map[*call]struct{}), abandoned: make(map[ids.TaskID]bool),
	}
}

// mayFail tells whether an object, or what it is made of, may be an error.
func (m *model) mayFail(id ids.ObjectID) bool {
	seen := make(map[ids.ObjectID]bool)
	var look func(id ids.ObjectID) bool
	look = func(id ids.ObjectID) bool {
		if seen[id] {
			return false
		}
		seen[id] = true
		x := m.want[id]
		if m.rot[id] && m.madeOfPut(id) || m.isUnmade(id) || m.forgotten[id.Job()] {
			return true
		}
		if x == nil {
			return false
		}
		if x.may {
			return true
		}
		return slices.ContainsFunc(x.deps, look)
	}
	return look(id)
}

// madeOfPut tells whether an object is a put, or made of one: that is not kept for it to be made again.
func (m *model) madeOfPut(id ids.ObjectID) bool {
	x := m.want[id]
	return id.IsPut() || x == nil || slices.ContainsFunc(x.deps, m.madeOfPut)
}

// judge compares what a get gave with what it had to.
func (m *model) judge(w *World, id ids.ObjectID, got outcome) {
	x := m.want[id]
	if x == nil {
		return
	}
	if got.err != nil {
		switch code := got.err.Code; {
		case code == x.err, m.mayFail(id), isShort(got.err) && w.plan.short():
		default:
			w.fail("%s, which is to be %d, is error %d: %v", briefObject(id), x.val, code, got.err)
		}
		return
	}
	if x.err != 0 && !m.mayFail(id) || x.err == 0 && !x.any && got.val != x.val {
		w.fail("%s is %d, and is to be %d, or error %d", briefObject(id), got.val, x.val, x.err)
	}
}

// held counts a process' handles: what nobody holds may be dropped, and made again by another attempt. Those of a process whose node's life is over no owner
// knows of.
func (m *model) held(p *process, id ids.ObjectID, n int) {
	if p.buried {
		return
	}
	if m.handles[id] += n; m.handles[id] == 0 {
		delete(m.handles, id)
		delete(m.made, id)
	}
}

// processGone takes back what a process held and ran.
func (m *model) processGone(p *process) {
	m.deaths++
	m.disturbed = p.w.now
	for id := range p.handles {
		m.held(p, id, -1)
	}
	for c := range m.running[p.n] {
		if c.p == p {
			delete(m.running[p.n], c)
		}
	}
}

// saw notes which attempt has made a value: while somebody whose handles count holds the object it stays the same, unless all copies are lost.
func (m *model) saw(p *process, r *wire.Resolved, out *outcome) {
	meta := r.Result.Value.Meta
	if out.err != nil || len(meta) != 2 || r.ID.IsPut() || p.buried {
		return
	}
	now := attempt{meta[0], meta[1]}
	if was, known := m.made[r.ID]; known && was != now && !m.rot[r.ID] && !m.forgotten[r.ID.Job()] {
		p.w.fail("%s was accepted twice: of attempt %v, and now of %v", briefObject(r.ID), was, now)
	}
	m.made[r.ID] = now
}

// rotten notes whose copies a fault has spoiled.
func (m *model) rotten(rs []record.Record) {
	for _, r := range rs {
		m.rot[r.ID] = true
		m.blocks = m.blocks || r.Packed
	}
}

// writing is an attempt that has written an object, and the node of its store.
type writing struct {
	n       *Node
	attempt uint32
}

// written notes where an attempt writes an object.
func (m *model) written(id ids.ObjectID, at writing) {
	m.at[id] = append(slices.DeleteFunc(m.at[id], func(w writing) bool { return w == at }), at)
}

// dropped notes that an owner does not want what an attempt has written.
func (m *model) dropped(id ids.ObjectID, at writing) {
	m.unwanted[id] = append(m.unwanted[id], at)
}

// keeper is the node whose store has an attempt's object, or the last one's that is wanted; nil: nobody has written it.
func (m *model) keeper(id ids.ObjectID, attempt uint32) *Node {
	for _, w := range slices.Backward(m.at[id]) {
		if w.attempt == attempt || attempt == 0 && !slices.Contains(m.unwanted[id], w) {
			return w.n
		}
	}
	return nil
}

// nodeLost notes that a life of a node is over, which may go on, unaware of that. What it had of jobs of other nodes may be lost, and what other nodes had of its own jobs: they drop that.
func (m *model) nodeLost(n *Node, unaware bool) {
	m.disturbed = n.w.now
	for id, at := range m.at {
		of := n.w.node(id.Job().Home())
		if of != n && slices.ContainsFunc(at, func(w writing) bool { return w.n == n }) || of == n && slices.ContainsFunc(at, func(w writing) bool { return w.n != n }) {
			m.rot[id] = true
		}
	}
	// What is held on a node that is gone, or elsewhere of a job whose home is, no owner knows to be held.
	maps.DeleteFunc(m.made, func(id ids.ObjectID, _ attempt) bool { return id.Job().Home() == n.home })
	for _, p := range n.w.processes {
		switch {
		case p.dead:
		case p.n != n && p.job.Home() == n.home, p.n == n && unaware:
			m.bury(p)
		case p.n == n:
			for id := range p.handles {
				delete(m.made, id)
			}
		}
	}
}

// storeLost notes that what a node's store had is gone: puts are lost, and results are made again.
func (m *model) storeLost(n *Node) {
	m.blocks = true
	for id, at := range m.at {
		if slices.ContainsFunc(at, func(w writing) bool { return w.n == n }) {
			m.rot[id] = true
		}
	}
}

// abandonedNode notes that a job has given up what it has on a node, which lives: there it is ended.
func (m *model) abandonedNode(n *Node, job ids.JobID) {
	m.disturbed = n.w.now
	for id, at := range m.at {
		if id.Job() == job && slices.ContainsFunc(at, func(w writing) bool { return w.n == n }) {
			m.rot[id] = true
		}
	}
	for _, p := range n.w.processes {
		if p.n == n && p.job == job && !p.dead {
			m.bury(p)
		}
	}
}

// dismissed notes that an owner has told a client to go, which may hear of that much later.
func (m *model) dismissed(w *World, id ids.ClientID) {
	for _, p := range w.processes {
		if p.id == id && !p.dead {
			m.bury(p)
		}
	}
}

// bury has what a process holds count no more, which goes on.
func (m *model) bury(p *process) {
	for id := range p.handles {
		delete(m.made, id)
		m.held(p, id, -1)
	}
	p.buried = true
}

// lost is the store's word that it has no copy of an object. It has to have an excuse where the object cannot be made again.
func (m *model) lost(n *Node, l objectstore.Lost) {
	w := n.w
	if at := m.keeper(l.ID, l.Copy); at != nil && at != n {
		return // it had a copy, or was told of one: the node that keeps the object says more
	}
	if w.node(l.ID.Job().Home()).owners[l.ID.Job()] == nil { // its job is over, and another one wanted it still
		return
	}
	if m.blocks || m.forgotten[l.ID.Job()] || m.isUnmade(l.ID) || len(l.Unsealed) > 0 || l.Err == nil || l.Err.Code != errs.CodeObjectLost {
		m.rot[l.ID] = true
		return
	}
	// That a result was freed is not logged while its task is known: an owner that was rebuilt asks for it, and has it made again. Or it has something sealed once
	// more that the one before had let go of.
	rebuilt := m.rebuilt[l.ID.Job()]
	if !m.rot[l.ID] && (!rebuilt || l.ID.IsPut() && (l.Client == 0 || m.handles[l.ID] != 0)) {
		w.fail("the store has lost %s, and no fault explains that: %v", briefObject(l.ID), l.Err)
	}
	m.rot[l.ID] = true
}

// sent notes which attempts at actors' calls an owner has sent though their callers have the results.
func (m *model) sent(e *wire.Exec) {
	for _, t := range e.Tasks {
		delete(m.abandoned, t.Spec.ID)
		if !m.forgotten[t.Spec.ID.Job()] && m.had[t.Spec.ID] {
			m.again[begun{t.Spec.ID, t.Attempt, e.Lease}] = true
		}
	}
}

// gaveUp notes that an owner has given a task's lease back while a worker has the task: it may begin before it hears of that, and nobody counts its CPU.
func (m *model) gaveUp(c *wire.CancelTask) {
	if c.Abandon {
		m.abandoned[c.Task] = true
	}
}

// begins notes that a task has a CPU. Actors' calls need none, and are not sent again once their caller has the result: an attempt that was sent before, and
// given up, may begin later.
func (m *model) begins(w *World, c *call) {
	m.began++
	if m.again[begun{c.task, c.item.Attempt, c.item.lease}] {
		w.fail("call %v of an actor runs again, and its caller had the result", brief(c.task))
	}
	m.resumes(w, c)
}

// resumes is begins of a task that has its CPU again.
func (m *model) resumes(w *World, c *call) {
	if c.lane.actor != nil || m.abandoned[c.task] {
		return
	}
	n := c.p.n
	if m.running[n] == nil {
		m.running[n] = make(map[*call]struct{})
	}
	m.running[n][c] = struct{}{}
	if len(m.running[n]) > w.cfg.CPUs && w.now > m.disturbed+int64(calm) && !n.overdrawn() {
		var all []string
		for c := range m.running[n] {
			all = append(all, brief(c.task))
		}
		slices.Sort(all)
		w.fail("%d tasks run on %d CPUs of node %v: %v", len(m.running[n]), w.cfg.CPUs, n.home, all)
	}
}

// yields notes that a task has no CPU while its create waits.
func (m *model) yields(n *Node, e objectstore.CreateWaits) {
	for c := range m.running[n] {
		if c.task == e.Task && c.p.id == e.Client {
			c.cpu = cpuLent
			delete(m.running[n], c)
		}
	}
}

// calm is how long after a death, a crash or a cancel a task may still run that was given up.
const calm = 50 * time.Millisecond

// ends notes that a task has no CPU any more.
func (m *model) ends(_ *World, c *call) { delete(m.running[c.p.n], c) }

// called notes that a caller has the result of an actor's call: no other call may have had it.
func (m *model) called(w *World, id ids.ObjectID, got uint64) {
	if by, known := m.calls[got]; known && by != id {
		w.fail("calls %s and %s of an actor both gave %d", briefObject(by), briefObject(id), got)
	}
	m.calls[got], m.had[id.Task] = id, true
}
