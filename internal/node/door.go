package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/node/jobfile"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/raylet/pool"
	"mobula/wire"
	"mobula/wire/conn"
)

// listen opens the socket and serves it.
func (d *door) listen() error {
	// A client that is slow is no client that is lost: decision 0013. What is encoded for it and not read is beside the budget of inline values.
	l, err := conn.Listen(d.Address(), conn.Config{Patient: true, SoftBacklog: int(min(max(d.inlineBudget()/8, 256<<10), 4<<20))})
	if err != nil {
		return err
	}
	d.l = l
	d.wg.Go(func() {
		if err := l.Serve(d.handshake); err != nil {
			d.cfg.Logger.Error("the node's socket failed; no client can connect any more", "err", err)
		}
	})
	return nil
}

// close ends the socket, if it is open.
func (d *door) close() {
	if d.l != nil {
		_ = d.l.Close() // what it had to say it said to the clients
		d.wg.Wait()
	}
}

// handshake lets a client in. It runs on the connection's goroutine.
func (d *door) handshake(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	if d.closing.Load() || d.life.Err() != nil {
		return nil, errs.New(errs.CodeShutdown, "node %s is stopping", d.cfg.Name)
	}
	switch h.Role {
	case wire.RoleDriver:
		return d.welcomeDriver(h, p)
	case wire.RoleWorker:
		return d.welcomeWorker(h, p)
	case wire.RoleTool:
		s, err := d.sessions.begin(wire.RoleTool, 0, p.PID)
		if err != nil {
			return nil, err
		}
		out := &outlet.Socket{}
		s.Outlet = out
		if err := d.members.join(s); err != nil {
			return nil, err
		}
		return d.session(s, out, h)
	}
	return nil, errs.New(errs.CodeProtocol, "role %d is none that this node knows", h.Role)
}

func (d *door) welcomeDriver(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	if err := checkPrograms(h.Program, h.Others); err != nil {
		return nil, err
	}
	prog := program{args: arguments(p.PID), said: h.Program, others: h.Others, functions: h.Functions, namespace: cmp.Or(h.Namespace, d.cfg.Namespace), environ: environOf(h, p.PID)}
	if err := prog.hold(fmt.Sprintf("/proc/%d/exe", p.PID)); err != nil {
		return nil, err
	}
	s, err := d.returning(h, p)
	if err == nil && s == nil {
		s, err = d.jobs.newDriver(p.PID, false)
	}
	if err != nil {
		prog.close()
		return nil, err
	}
	s.straight = d.straight(h)
	out := &outlet.Socket{}
	s.Outlet = out
	d.programs.set(s.job, prog)
	d.files.Note(s.job, jobfile.File{
		Client: s.id, PID: s.pid, Args: prog.args, Functions: h.Functions, Namespace: prog.namespace, Said: h.Program, Others: h.Others, Environ: wire.PackEnviron(prog.environ),
	})
	if err := d.members.join(s); err != nil {
		d.withdraw(s)
		return nil, err
	}
	if err := d.locals.startJob(pool.JobStarted{Job: s.job, Programs: prog.languages()}); err != nil {
		d.members.leave(s, errs.From(err))
		return nil, err
	}
	return d.session(s, out, h)
}

// returning is the session of a driver that comes back to a node that restarted, or to which its connection broke: under its old id and job, if the
// job is still there. It is nil for another driver.
func (d *door) returning(h *wire.Hello, p conn.Peer) (*session, error) {
	if h.Job == 0 || h.Client == 0 {
		return nil, nil
	}
	ev := jobs.Return{
		Job: h.Job, Client: h.Client, Nth: int(d.jobs.returns.Add(1)), Proved: d.secret.proves(h.Job, h.Client, h.Token),
	}
	if d.owners.get(h.Job) == nil {
		ev.Lost = d.files.WhyLost(h.Job)
	}
	if err := d.jobs.ask(nil, func(a jobs.Ask) jobs.Event { ev.Ask = a; return ev }); err != nil {
		d.jobs.ref.Deliver(jobs.Withdrawn{Job: ev.Job, Nth: ev.Nth}) // a core that was lost meanwhile may let it come yet
		return nil, err
	}
	s := d.sessions.of(h.Client, wire.RoleDriver, h.Job, p.PID)
	s.nth = ev.Nth
	return s, nil
}

// withdraw takes back what the door has done for a driver that was not let in.
func (d *door) withdraw(s *session) {
	if d.owners.get(s.job) == nil { // it has ended meanwhile, and was cleaned up before
		d.programs.drop(s.job)
		_ = d.files.Drop(s.job) // nobody reads it: without a log the job does not come back
	}
}

// straight tells whether a client's calls may go straight to other processes.
func (d *door) straight(h *wire.Hello) bool {
	return h.Straight && d.cfg.Channels && !d.cfg.CallsByOwner
}

// admitTimeout bounds the pool's judgement of a worker's registration.
const admitTimeout = 10 * time.Second

func (d *door) welcomeWorker(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	s, err := d.sessions.begin(wire.RoleWorker, 0, p.PID)
	if err != nil {
		return nil, err
	}
	s.straight = d.straight(h)
	out := &outlet.Socket{}
	s.Outlet = out
	var mismatch *errs.Error
	if h.Program == nil { // else it is of a language that registers no functions
		mismatch = errs.From(wire.CompareFunctions(d.programs.of(h.Job).functions, h.Functions))
	}
	q := d.jobs.send(s, func(a jobs.Ask) jobs.Event { return jobs.Arrived{Ask: a, Client: s.id, Straight: s.straight} })
	if err := d.raylet.ref.Post(pool.Registered{Client: s.id, Token: h.Token, PID: p.PID, Err: mismatch}); err != nil {
		d.jobs.ref.Deliver(jobs.GaveUp{Client: s.id, Err: errs.From(err)})
	}
	t := time.AfterFunc(admitTimeout, func() {
		d.jobs.ref.Deliver(jobs.GaveUp{Client: s.id, Err: errs.New(errs.CodeRuntimeSetup, "the pool did not answer the registration of process %d in %v", p.PID, admitTimeout)})
	})
	defer t.Stop()
	if err := d.jobs.await(q); err != nil {
		d.members.notLetIn(s, err)
		return nil, err
	}
	return d.session(s, out, h)
}

// session is the life of a connection that was let in.
func (d *door) session(s *session, out *outlet.Socket, h *wire.Hello) (*conn.Session, error) {
	var file *os.File
	if s.role != wire.RoleTool { // which reads no objects
		seg, err := d.store.segmentFor(s)
		if err != nil {
			d.members.leave(s, errs.From(err))
			return nil, err
		}
		file = seg.File()
	}
	w := d.welcome(s, cmp.Or(h.Namespace, d.programs.of(s.job).namespace, d.cfg.Namespace)) // a worker's is its job's
	w.Token = d.secret.token(s.job, s.id)
	return &conn.Session{Welcome: w, Segment: file, Failed: func(why error) { d.noteCut(s, why) }, Run: func(c *conn.Conn, err error) {
		if err == nil {
			out.Open(c)
			err = d.receive(s, c)
		}
		closed := errors.Is(err, io.EOF) || c.Gone()
		if !closed {
			d.noteCut(s, err)
		}
		if errors.Is(err, errs.ErrProtocol) || errors.Is(err, errs.ErrNotFound) { // what it sent was refused
			_ = c.TrySend(&wire.Bye{Err: errs.From(err)}) // so that its user learns why; the caller closes
		}
		d.members.hungUp(s, departure(s, err), closed)
	}}, nil
}

// noteCut says, once, that the node, and not the client, ends a connection. The client must not know of the end yet: a driver that
// comes back hears why its job is gone.
func (d *door) noteCut(s *session, err error) {
	if s.parted.Load() || errors.Is(err, errs.ErrShutdown) || d.life.Err() != nil || !s.cut.CompareAndSwap(false, true) {
		return
	}
	why := departure(s, err)
	d.cfg.Logger.Warn("a client was cut off", "client", s.id, "pid", s.pid, "job", s.job, "err", why)
	if s.role == wire.RoleDriver {
		d.jobs.ref.Deliver(jobs.Cut{Job: s.job, Err: why})
	}
}

// receive passes on what a client says until it says no more.
func (d *door) receive(s *session, c *conn.Conn) error {
	if s.passesOn() && d.sessions.numbers.Answers(s.job) != nil {
		c.PassOn(s.job)
	}
	return c.Serve(&d.locals.lender, func(batch []wire.Msg) error { return d.router.route(d.life, s, batch, true) })
}

// departure says why a client went, for those who waited for it.
func departure(s *session, err error) *errs.Error {
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return errs.New(errs.CodeDisconnected, "process %d closed its connection", s.pid)
	}
	return errs.From(err)
}

// environOf is a driver's environment: as it says, or of one of a version that does not, what its process was started with. A
// node's own is never its jobs'.
func environOf(h *wire.Hello, pid int32) []string {
	if len(h.Environ) > 0 {
		return wire.UnpackEnviron(h.Environ)
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return []string{}
	}
	return wire.UnpackEnviron(data)
}

// arguments are those of a process, without the program; none where it is gone.
func arguments(pid int32) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")[1:]
}
