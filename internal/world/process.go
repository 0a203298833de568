package world

import (
	"fmt"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/wire"
)

// process is a process of a client: a driver's or a worker's.
type process struct {
	w      *World
	n      *Node
	name   string
	role   wire.Role
	job    ids.JobID
	id     ids.ClientID
	root   ids.TaskID
	file   []byte // of its job, as the welcome gave it
	pid    int32
	worker ids.WorkerID // 0: it is a driver
	token  []byte

	conn     *conn // nil: there is none
	dead     bool
	buried   bool // its owner knows it no more, and it goes on
	away     bool // it was told to go, since a message of it was dropped
	end      pool.Exit
	watchers []*watcher
	turns    *box // of its threads
	threads  []*thread
	main     func(t *thread) // of a driver, once it is connected
	begun    bool
	gaveUp   func(err *errs.Error) // its job is over

	client
	executor
}

// watcher waits for a process' end, or a time.
type watcher struct {
	do    func()
	timer *timer
	told  bool
}

func (w *World) newProcess(n *Node, role wire.Role) *process {
	p := &process{w: w, n: n, role: role, pid: n.numbers.nextPID()}
	p.name = fmt.Sprintf("%s.%d", n.name, p.pid)
	p.turns = w.newBox("in "+p.name, p.turn)
	p.client.init(w)
	p.executor.init()
	w.processes = append(w.processes, p)
	return p
}

// newDriver starts a driver, which runs main when it is connected.
func newDriver(w *World, n *Node, main func(t *thread), gaveUp func(*errs.Error)) *process {
	p := w.newProcess(n, wire.RoleDriver)
	p.main, p.gaveUp = main, gaveUp
	p.dial()
	return p
}

func newWorker(w *World, n *Node, s pool.StartProcess) *process {
	p := w.newProcess(n, wire.RoleWorker)
	p.job, p.worker, p.token = s.Job, s.Worker, s.Token
	p.dial()
	return p
}

// in gives the bytes of an extent in a file that the process has had mapped, also if the file is there no more since its store was not kept.
func (p *process) in(file []byte, e wire.Extent) []byte {
	if e.File == 0 && p.n.memory.unkept[&file[0]] {
		return file[e.Off : e.Off+e.Size]
	}
	return p.at(e)
}

// at gives the bytes of an extent, as the process has its job's file mapped.
func (p *process) at(e wire.Extent) []byte {
	if e.File == 0 && p.n.memory.unkept[&p.file[0]] {
		return p.in(p.file, e)
	}
	if now := p.n.memory.files[p.job]; e.File == 0 && (len(now) == 0 || &now[0] != &p.file[0]) {
		p.w.fail("%s has a file of job %v mapped that is there no more, and uses %+v", p.name, p.job, e)
	}
	return p.n.memory.at(p.job, e)
}

// touch is at of who relies on the memory being there.
func (p *process) touch(e wire.Extent) []byte {
	if b := p.at(e); p.n.memory.unkept[&p.file[0]] {
		return b
	}
	return p.n.memory.touch(p.job, e)
}

// watch has something done when the process has ended, or, where it is not 0, the time has passed.
func (p *process) watch(most time.Duration, do func()) {
	x := &watcher{do: do}
	if p.dead {
		p.tell(x)
		return
	}
	p.watchers = append(p.watchers, x)
	if most > 0 {
		x.timer = p.w.after(int64(most), func() {
			if !x.told {
				x.told = true
				do()
			}
		})
	}
}

// tell gives the news of the end, a little later.
func (p *process) tell(x *watcher) {
	p.w.after(p.w.rng.Int64N(int64(2*time.Millisecond)), func() {
		if !x.told {
			x.told = true
			x.do()
		}
	})
}

// kill ends the process by a signal. What it had sent may be on its way.
func (p *process) kill(why string) {
	if !p.dead {
		p.over(pool.Exit{Signal: "killed"}, why, false)
	}
}

// exit ends the process in order.
func (p *process) exit() {
	if !p.dead {
		p.over(pool.Exit{}, "it has left", true)
	}
}

// vanish is the end with the node or its machine.
func (p *process) vanish() { p.kill("its machine is gone") }

func (p *process) over(e pool.Exit, why string, all bool) {
	p.dead, p.end = true, e
	p.stopThreads()
	p.turns.close()
	if p.conn != nil {
		p.conn.processLost(why, all)
		p.conn = nil
	}
	for _, x := range p.watchers {
		if x.timer != nil {
			x.timer.stop()
		}
		p.tell(x)
	}
	p.watchers = nil
	p.w.model.processGone(p)
}

// The pauses of who looks for a node.
const (
	pauseFrom = 20 * time.Millisecond
	pauseTo   = time.Second
)

// receive takes what comes over the connection.
func (p *process) receive(ev any) {
	switch ev := ev.(type) {
	case welcome:
		p.welcomed(ev.session, ev.file)
	case refusal:
		p.refused(ev.err)
	case closed:
		p.lost()
	case receipt:
		ev.to.put(ev.ev)
	case wire.Msg:
		p.message(ev)
	}
	p.wake()
}

func (p *process) welcomed(s *session, file []byte) {
	p.id, p.job, p.root, p.file = s.id, s.job, s.root(), file
	p.conn.welcomed = true
	switch {
	case p.main != nil && !p.begun:
		p.begun = true
		p.spawn(p.main)
	case p.main != nil:
		p.replay()
	}
}

// refused looks for the node again later, unless that is its last word.
func (p *process) refused(err *errs.Error) {
	p.conn = nil
	switch {
	case p.worker != 0:
		p.exit()
	case err.Code == errs.CodeNoNode || err.Code == errs.CodeDisconnected || err.Code == errs.CodeShutdown:
		p.redial()
	default:
		p.gaveUp(err)
	}
}

// lost is the end of the connection: a worker ends with it, a driver looks for the node.
func (p *process) lost() {
	p.conn = nil
	if p.worker != 0 {
		p.exit()
		return
	}
	p.redial()
}

func (p *process) redial() {
	p.w.after(p.w.between(pauseFrom, pauseTo), func() {
		if !p.dead && p.conn == nil {
			p.dial()
		}
	})
}

// message takes a message of the node.
func (p *process) message(m wire.Msg) {
	switch m := m.(type) {
	case *wire.Resolved:
		p.resolved(m)
	case *wire.Created:
		p.created(m)
	case *wire.MapFile:
		p.mapped[m.File] = true
	case *wire.UnmapFile:
		p.unmap(m.File)
	case *wire.Resync:
		p.declare(m.Component, m.Epoch)
	case *wire.Exec:
		p.exec(m)
	case *wire.CancelTask:
		p.cancelTask(m)
	case *wire.StopActor:
		p.stopActor(m)
	case *wire.Resume:
		p.resume(m.Task)
	case *wire.Drain:
		p.drain()
	case *wire.Bye:
		p.bye(m.Err)
	case *wire.StreamItem:
		p.streamItem(m)
	case *wire.StreamAck:
		p.acknowledge(m)
	case *wire.Credit:
		p.replays.credit(m.Bytes)
	case *wire.Collect, *wire.ActorNews, *wire.Unneeded:
	default:
		p.w.fail("%s was sent a %T", p.name, m)
	}
}

// bye is the node's word that the client is to go.
func (p *process) bye(err *errs.Error) {
	if p.worker != 0 {
		p.exit()
		return
	}
	p.gaveUp(err)
}
