package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mobula/internal/errs"
	"mobula/internal/node/jobs"
	"mobula/internal/node/outlet"
	"mobula/raylet/pool"
	"mobula/wire"
	"mobula/wire/conn"
)

// server is the node's socket.
type server struct {
	l  *conn.Listener
	wg sync.WaitGroup
}

// SocketName is the name of a node's socket in its directory.
const SocketName = "node.sock"

// Address is the path of the node's socket.
func (n *Node) Address() string { return filepath.Join(n.dir, SocketName) }

// listen opens the socket and serves it.
func (n *Node) listen() error {
	// A client that is slow is no client that is lost: decision 0013. What is encoded for it and not read is beside the budget of inline values.
	l, err := conn.Listen(n.Address(), conn.Config{Patient: true, SoftBacklog: int(min(max(n.inlineBudget()/8, 256<<10), 4<<20))})
	if err != nil {
		return err
	}
	n.socket = &server{l: l}
	n.socket.wg.Go(func() {
		if err := l.Serve(n.handshake); err != nil {
			n.cfg.Logger.Error("the node's socket failed; no client can connect any more", "err", err)
		}
	})
	return nil
}

func (s *server) close() {
	_ = s.l.Close() // what it had to say it said to the clients
	s.wg.Wait()
}

// handshake lets a client in. It runs on the connection's goroutine.
func (n *Node) handshake(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	if n.closing.Load() || n.life.Err() != nil {
		return nil, errs.New(errs.CodeShutdown, "node %s is stopping", n.cfg.Name)
	}
	switch h.Role {
	case wire.RoleDriver:
		return n.welcomeDriver(h, p)
	case wire.RoleWorker:
		return n.welcomeWorker(h, p)
	case wire.RoleTool:
		s, err := n.newSession(wire.RoleTool, 0, p.PID)
		if err != nil {
			return nil, err
		}
		out := &outlet.Socket{}
		s.Outlet = out
		if err := n.join(s); err != nil {
			return nil, err
		}
		return n.session(s, out, h)
	}
	return nil, errs.New(errs.CodeProtocol, "role %d is none that this node knows", h.Role)
}

func (n *Node) welcomeDriver(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	if err := checkPrograms(h.Program, h.Others); err != nil {
		return nil, err
	}
	prog := program{args: arguments(p.PID), said: h.Program, others: h.Others, functions: h.Functions, namespace: cmp.Or(h.Namespace, n.cfg.Namespace), environ: environOf(h, p.PID)}
	if err := prog.hold(fmt.Sprintf("/proc/%d/exe", p.PID)); err != nil {
		return nil, err
	}
	s, err := n.returning(h, p)
	if err == nil && s == nil {
		s, err = n.newDriver(p.PID, false)
	}
	if err != nil {
		prog.close()
		return nil, err
	}
	out := &outlet.Socket{}
	s.Outlet = out
	n.setProgram(s.job, prog)
	n.noteDriver(s, h, prog.namespace, prog.environ)
	if err := n.join(s); err != nil {
		n.withdraw(s)
		return nil, err
	}
	if err := n.startJob(pool.JobStarted{Job: s.job, Programs: prog.languages()}); err != nil {
		n.leave(s, errs.From(err))
		return nil, err
	}
	return n.session(s, out, h)
}

// returning is the session of a driver that comes back to a node that restarted, or to which its connection broke: under its old id and job, if the
// job is still there. It is nil for another driver.
func (n *Node) returning(h *wire.Hello, p conn.Peer) (*session, error) {
	if h.Job == 0 || h.Client == 0 {
		return nil, nil
	}
	ev := jobs.Return{
		Job: h.Job, Client: h.Client, Nth: int(n.jobs.returns.Add(1)), Proved: tokenMatches(n.token(h.Job, h.Client), h.Token),
	}
	if n.owners.get(h.Job) == nil {
		ev.Lost = n.whyLost(h.Job)
	}
	if err := n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { ev.Ask = a; return ev }); err != nil {
		return nil, err
	}
	s := n.sessionOf(h.Client, wire.RoleDriver, h.Job, p.PID)
	s.nth = ev.Nth
	return s, nil
}

// withdraw takes back what was done for a driver that was not let in.
func (n *Node) withdraw(s *session) {
	if n.jobs.ref.Deliver(jobs.Withdrawn{Job: s.job, Nth: s.nth}); n.owners.get(s.job) == nil { // it ended meanwhile, and so did its program
		n.dropProgram(s.job)
	}
}

// admitTimeout bounds the pool's judgement of a worker's registration.
const admitTimeout = 10 * time.Second

func (n *Node) welcomeWorker(h *wire.Hello, p conn.Peer) (*conn.Session, error) {
	s, err := n.newSession(wire.RoleWorker, 0, p.PID)
	if err != nil {
		return nil, err
	}
	out := &outlet.Socket{}
	s.Outlet = out
	var mismatch *errs.Error
	if h.Program == nil { // else it is of a language that registers no functions
		mismatch = errs.From(wire.CompareFunctions(n.programOf(h.Job).functions, h.Functions))
	}
	q := n.jobs.send(s, func(a jobs.Ask) jobs.Event { return jobs.Arrived{Ask: a, Client: s.id} })
	if err := n.raylet.Post(pool.Registered{Client: s.id, Token: h.Token, PID: p.PID, Err: mismatch}); err != nil {
		n.jobs.ref.Deliver(jobs.GaveUp{Client: s.id, Err: errs.From(err)})
	}
	t := time.AfterFunc(admitTimeout, func() {
		n.jobs.ref.Deliver(jobs.GaveUp{Client: s.id, Err: errs.New(errs.CodeRuntimeSetup, "the pool did not answer the registration of process %d in %v", p.PID, admitTimeout)})
	})
	defer t.Stop()
	if err := n.jobs.await(q); err != nil {
		return nil, err
	}
	return n.session(s, out, h)
}

// admitted runs in the raylet: the worker is one we started. From now on it can be sent to; what is sent waits for the Welcome.
func (n *Node) admitted(e pool.Admit) {
	if err := n.jobs.ask(nil, func(a jobs.Ask) jobs.Event { return jobs.Admit{Ask: a, Client: e.Client, Job: e.Job} }); err != nil {
		n.raylet.Deliver(pool.Disconnected{Client: e.Client})
	}
}

// session is the life of a connection that was let in.
func (n *Node) session(s *session, out *outlet.Socket, h *wire.Hello) (*conn.Session, error) {
	var file *os.File
	if s.role != wire.RoleTool { // which reads no objects
		seg, err := n.shm.Segment(s.job)
		if err != nil {
			n.leave(s, errs.From(err))
			return nil, err
		}
		file = seg.File()
	}
	w := n.welcomeFor(s, cmp.Or(h.Namespace, n.programOf(s.job).namespace, n.cfg.Namespace)) // a worker's is its job's
	w.Token = n.token(s.job, s.id)
	return &conn.Session{Welcome: w, Segment: file, Run: func(c *conn.Conn, err error) {
		if err == nil {
			out.Open(c)
			err = n.receive(s, c)
		}
		if errors.Is(err, errs.ErrProtocol) || errors.Is(err, errs.ErrNotFound) { // what it sent was refused
			_ = c.TrySend(&wire.Bye{Err: errs.From(err)}) // so that its user learns why; the caller closes
		}
		why := departure(s, err)
		closed := errors.Is(err, io.EOF) || c.Gone()
		if !s.parted.Load() && !closed && !errors.Is(err, errs.ErrShutdown) && n.life.Err() == nil {
			n.noteCut(s, why)
		}
		n.hungUp(s, why, closed)
	}}, nil
}

// noteCut says that the node, and not the client, has ended a connection: a driver that comes
// back hears why its job is gone.
func (n *Node) noteCut(s *session, why *errs.Error) {
	n.cfg.Logger.Warn("a client was cut off", "client", s.id, "pid", s.pid, "job", s.job, "err", why)
	if s.role == wire.RoleDriver {
		n.jobs.ref.Deliver(jobs.Cut{Job: s.job, Err: why})
	}
}

// receive passes on what a client says until it says no more.
func (n *Node) receive(s *session, c *conn.Conn) error {
	return n.lender.Serve(c, func(batch []wire.Msg) error { return n.route(n.life, s, batch, true) })
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
