package node

import (
	"context"
	"errors"
	"os"

	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/internal/registry"
	"mobula/internal/state"
	"mobula/raylet/pool"
	"mobula/telemetry"
	"mobula/wire"
	"mobula/worker"
)

// localPort is the way from a client in this process to the node.
type localPort struct {
	l *locals
	s *session
}

func (p *localPort) Send(msgs ...wire.Msg) error { return p.l.router.route(p.l.life, p.s, msgs, false) }

// SendTurn implements client.TurnPort.
func (p *localPort) SendTurn(msgs ...wire.Msg) (turn func(), err error) {
	return p.l.router.pass(p.l.life, p.s, msgs, false, true)
}

func (p *localPort) Close() error {
	p.l.members.leave(p.s, errs.New(errs.CodeShutdown, "the client was closed"))
	return nil
}

type closer interface {
	Close(ctx context.Context) error
}

// attach joins this process' program as the driver of a new job. others are what workers of further languages run.
func (l *locals) attach(namespace string, others ...wire.Program) (*client.Client, error) {
	if err := checkPrograms(nil, others); err != nil {
		return nil, err
	}
	if namespace == "" {
		namespace = l.cfg.Namespace
	}
	s, err := l.jobs.newDriver(int32(os.Getpid()), true)
	if err != nil {
		return nil, err
	}
	job := s.job
	l.programs.set(job, program{functions: registry.List(), others: others, local: true})
	out := &outlet.Local{}
	s.Outlet = out
	w := l.welcome(s, namespace)
	c := l.newClient(client.Config{Port: &localPort{l, s}, Welcome: w, Sample: sampler(w, l.cfg.Logger), Lender: &l.lender, Mailboxes: l.boxes, Apart: l.apart()})
	out.Deliver, s.inside = c.Deliver, c
	if err := l.members.join(s); err != nil {
		return nil, err
	}
	if err := l.startSlots(job); err != nil {
		l.members.leave(s, errs.From(err))
		return nil, err
	}
	return c, nil
}

// startSlots makes the job known to the raylet; without worker processes, its slots are two
// executors in this process, one for tasks and one for actors.
func (l *locals) startSlots(job ids.JobID) error {
	ev := pool.JobStarted{Job: job, Programs: l.programs.of(job).languages()}
	if !l.cfg.Processes {
		var err error
		if ev.Tasks, err = l.startExecutor(job, nil); err != nil {
			return err
		}
		if ev.Actors, err = l.startExecutor(job, nil); err != nil {
			return err
		}
		ev.Isolate = true
	}
	return l.startJob(ev)
}

// startExecutor runs an executor in this process and gives its client id; lookup finds its functions, nil: the
// program's.
func (l *locals) startExecutor(job ids.JobID, lookup func(string) (*registry.Function, bool)) (ids.ClientID, error) {
	s, err := l.sessions.begin(wire.RoleWorker, job, int32(os.Getpid()))
	if err != nil {
		return 0, err
	}
	s.system = lookup != nil
	out := &outlet.Local{}
	s.Outlet = out
	var exec *worker.Executor
	c := l.newClient(client.Config{
		Port: &localPort{l, s}, Welcome: l.welcome(s, l.cfg.Namespace),
		Holdings: func(h *wire.Holdings) { exec.Holdings(h) }, Mailboxes: l.boxes, Apart: l.apart(),
	})
	exec = worker.New(worker.Config{Client: c, Mailboxes: l.boxes, Memory: l.mapped.ofJob(job), Lookup: lookup, Log: l.cfg.Logger, Context: telemetry.Hook, Faults: l.faults.ofCalls(lookup != nil)})
	out.Deliver, s.inside = exec.Deliver, c
	if err := l.members.join(s); err != nil {
		return 0, err
	}
	return s.id, l.keep(job, exec, c)
}

// startJob makes a job known to the raylet, if it is not: one that was restored is, when its driver is back.
func (l *locals) startJob(ev pool.JobStarted) error {
	if l.jobs.hasStarted(ev.Job) {
		return nil
	}
	var err error
	if ev.System, err = l.startExecutor(ev.Job, l.graphs.function); err != nil {
		return err
	}
	return l.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Start{Ask: a, JobStarted: ev} })
}

// apart tells whether calls may go straight to other processes.
func (l *locals) apart() bool { return l.boxes != nil && l.cfg.Processes }

// newClient is one in this process.
func (l *locals) newClient(cfg client.Config) *client.Client {
	var c *client.Client
	cfg.Memory, cfg.Log, cfg.WarnAfter = l.mapped.ofJob(cfg.Welcome.Job), l.cfg.Logger, l.cfg.WarnAfter
	cfg.Explain = state.Explainer(func(ctx context.Context, method string, body []byte) ([]byte, error) {
		return c.Request(ctx, method, body)
	})
	c = client.New(cfg)
	return c
}

// keep notes what is to be closed with a job; at once, if the node closes.
func (l *locals) keep(job ids.JobID, cs ...closer) error {
	l.mu.Lock()
	open := l.running != nil
	if open {
		l.running[job] = append(l.running[job], cs...)
	}
	l.mu.Unlock()
	if open {
		return nil
	}
	l.closeThese(context.Background(), cs)
	return errs.New(errs.CodeShutdown, "node %s is stopping", l.cfg.Name)
}

// close closes what a job has.
func (l *locals) close(ctx context.Context, job ids.JobID) {
	l.mu.Lock()
	cs := l.running[job]
	delete(l.running, job)
	l.mu.Unlock()
	l.closeThese(ctx, cs)
}

// closeAll closes what all jobs have. No further job gets anything.
func (l *locals) closeAll(ctx context.Context) {
	l.mu.Lock()
	all := l.running
	l.running = nil
	l.mu.Unlock()
	for _, cs := range all {
		l.closeThese(ctx, cs)
	}
}

// closeThese closes parts of a job. A function that does not look at its context
// cannot be ended: each part gets a share of the time, so that the rest is closed in order.
func (l *locals) closeThese(ctx context.Context, cs []closer) {
	for _, c := range cs {
		short, cancel := context.WithTimeout(ctx, l.cfg.CloseTimeout/4)
		err := c.Close(short)
		cancel()
		if err == nil {
			continue
		}
		if _, ok := c.(*worker.Executor); ok {
			err = errs.New(errs.CodeShutdown, "tasks in this process still run though their context has ended, %v ago: a function must return when its context ends, or run in a worker process: %v", l.cfg.CloseTimeout/4, err)
		}
		l.cfg.Logger.Warn("a part of a job in this process did not close", "err", err)
		l.mu.Lock()
		l.stuck = errors.Join(l.stuck, err)
		l.mu.Unlock()
	}
}

// errStuck is what would not end.
func (l *locals) errStuck() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stuck
}
