package node

import (
	"context"
	"os"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/internal/registry"
	"mobula/raylet/pool"
	"mobula/telemetry"
	"mobula/wire"
	"mobula/worker"
)

// localPort is the way from a client in this process to the node.
type localPort struct {
	n *Node
	s *session
}

func (p *localPort) Send(msgs ...wire.Msg) error { return p.n.route(p.n.life, p.s, msgs, false) }

// SendTurn implements client.TurnPort.
func (p *localPort) SendTurn(msgs ...wire.Msg) (turn func(), err error) {
	return p.n.pass(p.n.life, p.s, msgs, false, true)
}

func (p *localPort) Close() error {
	p.n.leave(p.s, errs.New(errs.CodeShutdown, "the client was closed"))
	return nil
}

// Attach joins this process' program as the driver of a new job. others are what workers of further languages run.
func (n *Node) Attach(_ context.Context, namespace string, others ...wire.Program) (*client.Client, error) {
	if err := checkPrograms(nil, others); err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = n.cfg.Namespace
	}
	s, err := n.newDriver(int32(os.Getpid()), true)
	if err != nil {
		return nil, err
	}
	job := s.job
	n.setProgram(job, program{functions: registry.List(), others: others, local: true})
	out := &outlet.Local{}
	s.Outlet = out
	w := n.welcomeFor(s, namespace)
	c := n.newClient(client.Config{Port: &localPort{n, s}, Welcome: w, Sample: sampler(w, n.cfg.Logger), Lender: &n.lender})
	out.Deliver = c.Deliver
	if err := n.join(s); err != nil {
		return nil, err
	}
	if err := n.startSlots(job); err != nil {
		return nil, err
	}
	return c, nil
}

// startSlots makes the job known to the raylet; without worker processes, its slots are two
// executors in this process, one for tasks and one for actors.
func (n *Node) startSlots(job ids.JobID) error {
	ev := pool.JobStarted{Job: job, Programs: n.programOf(job).languages()}
	if !n.cfg.Processes {
		var err error
		if ev.Tasks, err = n.startExecutor(job, nil); err != nil {
			return err
		}
		if ev.Actors, err = n.startExecutor(job, nil); err != nil {
			return err
		}
		ev.Isolate = n.socket != nil
	}
	return n.startJob(ev)
}

// startExecutor runs an executor in this process and gives its client id; lookup finds its functions, nil: the
// program's.
func (n *Node) startExecutor(job ids.JobID, lookup func(string) (*registry.Function, bool)) (ids.ClientID, error) {
	s, err := n.newSession(wire.RoleWorker, job, int32(os.Getpid()))
	if err != nil {
		return 0, err
	}
	s.system = lookup != nil
	out := &outlet.Local{}
	s.Outlet = out
	var exec *worker.Executor
	c := n.newClient(client.Config{
		Port: &localPort{n, s}, Welcome: n.welcomeFor(s, n.cfg.Namespace),
		Holdings: func(h *wire.Holdings) { exec.Holdings(h) },
	})
	exec = worker.New(worker.Config{Client: c, Memory: n.memoryOf(job), Lookup: lookup, Log: n.cfg.Logger, Context: telemetry.Hook, Faults: n.callFaults(lookup != nil)})
	out.Deliver = exec.Deliver
	if err := n.join(s); err != nil {
		return 0, err
	}
	n.mu.Lock()
	n.locals[job] = append(n.locals[job], exec, c)
	n.mu.Unlock()
	return s.id, nil
}

// takeLocals gives, once, what a job has in this process.
func (n *Node) takeLocals(job ids.JobID) []closer {
	n.mu.Lock()
	defer n.mu.Unlock()
	cs := n.locals[job]
	delete(n.locals, job)
	return cs
}
