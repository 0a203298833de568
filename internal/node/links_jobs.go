package node

import (
	"context"
	"runtime"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/link"
	"mobula/raylet"
	"mobula/raylet/cluster"
	"mobula/raylet/internode"
	"mobula/raylet/owner"
	"mobula/wire"
)

// open makes a job of another node known here, and has what its workers run brought here. That they cannot run here is said in answer to what is wanted for it.
func (l *links) open(node ids.Home, m *internode.OpenJob) {
	if l.agent(m.Job) != nil {
		return // it was said before
	}
	var languages []string
	for _, p := range programOf(m).languages() {
		languages = append(languages, p.Language)
	}
	a := &agent{job: m.Job, said: m, box: l.box(node), gate: newProgramGate(languages)}
	a.life, a.end = context.WithCancel(l.life)
	l.mu.Lock()
	l.openings++
	a.opening = l.openings
	l.agents[m.Job] = a
	l.mu.Unlock()
	l.needTime(node)
	l.fetch(a, a.gate.begin())
}

// programOf is what a job of another node runs, as its home says.
func programOf(m *internode.OpenJob) program {
	return program{args: m.Args, said: m.Program, others: m.Others, functions: m.Functions, namespace: m.Namespace, environ: wire.UnpackEnviron(m.Environ)}
}

// openAt makes a job of this node known to another one. One that has ended meanwhile stays unknown there.
func (l *links) openAt(node ids.Home, job ids.JobID) {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.owners.get(job) == nil {
		return
	}
	if !slices.Contains(l.opened[job], node) {
		l.opened[job] = append(l.opened[job], node)
	}
	l.say(node, l.openJob(job))
	l.needTime(node)
}

// closeAt ends a job of this node on another one.
func (l *links) closeAt(node ids.Home, job ids.JobID) {
	l.opening.Lock()
	defer l.opening.Unlock()
	l.closeLocked(node, job)
}

func (l *links) closeLocked(node ids.Home, job ids.JobID) {
	l.notOpenLocked(node, job)
	l.say(node, &internode.CloseJob{Job: job})
}

// ended ends a job that is over on all other nodes, also where who chooses nodes does not know any more that it is open.
func (l *links) ended(job ids.JobID) {
	l.chooser.deliver(cluster.JobEnded{Job: job})
	l.opening.Lock()
	defer l.opening.Unlock()
	for _, node := range slices.Clone(l.opened[job]) {
		l.closeLocked(node, job)
	}
}

// worksWith are the nodes that have a job of this one open, or a job open here, in order.
func (l *links) worksWith() (out []ids.Home) {
	l.opening.Lock()
	for _, nodes := range l.opened {
		out = append(out, nodes...)
	}
	l.opening.Unlock()
	for _, job := range l.hostedJobs() {
		out = append(out, job.Home())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// openOn are the nodes where a job of this one is open.
func (l *links) openOn(job ids.JobID) []ids.Home {
	l.opening.Lock()
	defer l.opening.Unlock()
	return slices.Clone(l.opened[job])
}

// nowhereOpen notes that no job of this node is open on another one any more.
func (l *links) nowhereOpen(node ids.Home) {
	l.opening.Lock()
	defer l.opening.Unlock()
	for job := range l.opened {
		l.notOpenLocked(node, job)
	}
}

func (l *links) notOpenLocked(node ids.Home, job ids.JobID) {
	if l.opened[job] = slices.DeleteFunc(l.opened[job], func(at ids.Home) bool { return at == node }); len(l.opened[job]) == 0 {
		delete(l.opened, job)
	}
}

// openJob is what another node must know of a job of this one.
func (l *links) openJob(job ids.JobID) *internode.OpenJob {
	p := l.programs.of(job)
	m := &internode.OpenJob{
		Job: job, Namespace: p.namespace, Program: p.said, Others: p.others, Functions: p.functions, Environ: wire.PackEnviron(p.environment()),
		Args: p.args, OS: runtime.GOOS, Arch: runtime.GOARCH, Output: l.cfg.WorkerOutput != nil,
	}
	if p.said == nil && p.exe == nil { // the node's own
		m.Args = l.cfg.workerArgs()
	}
	return m
}

// toSched hands a message of a job's owner to the scheduler, when what the job's workers run is here.
func (l *links) toSched(a *agent, m *internode.ToSched) {
	a.mu.Lock()
	defer a.mu.Unlock()
	on, get := a.gate.pass(m.Msg)
	for _, ev := range on {
		l.raylet.ref.Deliver(raylet.OfJob{Job: a.job, Event: ev})
	}
	l.fetch(a, get)
	l.bringFunction(a, m.Msg)
}

// toClients hands messages of a job's owner to its workers here. One that is gone gets nothing: the owner is being told.
func (l *links) toClients(m *internode.ToClients) {
	for i := range m.Items {
		s := l.sessions.get(m.Items[i].Client)
		if s == nil || s.job != m.Job {
			continue
		}
		for _, msg := range l.readable(s, m.Items[i].Msgs) {
			s.Push(msg)
		}
		s.Flush()
	}
}

// readable is messages that were passed on for a client, for whom they are to be read here: a client in this process, or a test's faults.
func (l *links) readable(s *session, msgs []wire.Msg) (out []wire.Msg) {
	if s.passesOn() {
		return msgs
	}
	for _, m := range msgs {
		all, err := m.(*wire.Encoded).Messages()
		if err != nil {
			l.limited.warn("a message of a job's owner for a client here is malformed", "client", s.id, "err", err)
		}
		out = append(out, all...)
	}
	return out
}

// joined gives a worker on another node a session here, as which its job's owner knows it.
func (l *links) joined(m *internode.ClientJoined) {
	s := l.sessions.of(m.Client, m.Role, m.Job, 0)
	s.Outlet = &link.Client{Box: l.box(m.Client.Home()), Job: m.Job, Client: m.Client}
	s.meet(m.Job)
	l.sessions.add(s)
	l.owners.post(m.Job, s.joined(m.Job))
}

func (l *links) gone(m *internode.ClientGone) {
	if s := l.sessions.get(m.Client); s != nil {
		l.endSession(s, m.Err)
	}
	l.owners.post(m.Job, owner.ClientGone{Client: m.Client, Err: m.Err})
}

// closed ends what a job of this node had on another one: its workers there are gone, and nothing more is said of them.
func (l *links) closed(node ids.Home, job ids.JobID) {
	err := errs.New(errs.CodeDisconnected, "node %s has closed job %v", l.nameOf(node), job)
	for _, s := range l.workersOf(job, node) {
		l.endSession(s, err)
		l.owners.post(job, owner.ClientGone{Client: s.id, Err: err})
	}
	l.chooser.deliver(cluster.JobClosed{Node: node, Job: job})
}

// endSession ends the session of a worker on another node.
func (l *links) endSession(s *session, why *errs.Error) {
	s.leave(why)
	l.sessions.remove(s)
	s.finish()
}

// fromClients passes on what workers on another node say, as if they were here.
func (l *links) fromClients(m *internode.FromClients) error {
	for i := range m.Items {
		it := &m.Items[i]
		s := l.sessions.get(it.Client)
		if s == nil || s.job != m.Job {
			continue // it is gone
		}
		if err := l.router.route(l.life, s, it.Msgs, true); err != nil {
			return err
		}
	}
	return nil
}
