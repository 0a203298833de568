package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/guard"
	"mobula/internal/ids"
	"mobula/internal/pidfd"
	"mobula/raylet/pool"
)

// EnvTemplate is the number of the descriptor over which a template is asked for workers.
const EnvTemplate = "MOBULA_TEMPLATE_FD"

const (
	templateFD    = 3
	templateGrace = 2 * time.Second // for a template to end once nobody asks it for more
	maxDatagram   = 64 << 10
)

// A template is a process that has loaded what the workers of its job need, and forks them. So a worker starts in
// milliseconds even if its language takes long to start. Each datagram in both directions is a JSON object, over a
// socket that keeps message boundaries:
//
//	to it    {"op":"fork","id":N,"env":{...}} with two descriptors, for stdout and stderr
//	from it  {"op":"forked","id":N,"pid":P} or {"op":"failed","id":N,"error":"..."}
//	         {"op":"exited","id":N,"pid":P,"status":S,"signal":"KILL"}
//
// A worker is in a process group of its own, and is killed by the kernel when the template ends. The template kills
// the rest of the group before it reaps the worker, so that the group's number is not in use again by then. It ends
// when the socket is closed.
type template struct {
	job   ids.JobID
	name  string // the guard's name for it
	guard *guard.Guard
	cmd   *exec.Cmd
	conn  *net.UnixConn
	err   *stream
	out   *stream
	gone  chan struct{} // closed once it sends nothing more

	mu     sync.Mutex
	forks  map[ids.WorkerID]*fork // guarded by mu; workers asked for and not known to have exited
	ending bool                   // guarded by mu: it ends with the last of forks
	closed bool                   // guarded by mu: its socket is closed, so it ends
}

// templateKey tells which workers a template forks.
type templateKey struct {
	job      ids.JobID
	language string
}

// fork is a worker that a template was asked for.
type fork struct {
	forked chan int       // capacity 1: its pid; 0: it failed, see err
	exited chan pool.Exit // capacity 1
	err    error
}

type toTemplate struct {
	Op  string            `json:"op"`
	ID  ids.WorkerID      `json:"id"`
	Env map[string]string `json:"env"`
}

type fromTemplate struct {
	Op     string       `json:"op"`
	ID     ids.WorkerID `json:"id"`
	PID    int          `json:"pid"`
	Status int          `json:"status"`
	Signal string       `json:"signal"`
	Error  string       `json:"error"`
}

// template gives the template of a job's language, and starts one if none lives. It runs on the launcher's thread,
// with which the template dies.
func (l *Launcher) template(k templateKey, p *process) (*template, error) {
	l.mu.Lock()
	t, closed := l.templates[k], l.closed
	l.mu.Unlock()
	if closed {
		return nil, errs.New(errs.CodeShutdown, "the node is stopping")
	}
	if t != nil && !t.ended() {
		return t, nil
	}
	t, err := l.startTemplate(k.job, p)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = t.conn.Close() // it ends
		return nil, errs.New(errs.CodeShutdown, "the node is stopping")
	}
	l.templates[k] = t
	return t, nil
}

func (l *Launcher) startTemplate(job ids.JobID, p *process) (*template, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "template")
	defer func() { _ = theirs.Close() }() // the process has it, or never will
	ours := os.NewFile(uintptr(fds[0]), "template")
	c, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return nil, err
	}
	l.forked++
	t := &template{job: job, name: fmt.Sprintf("template-%d", l.forked), guard: l.guard, conn: c.(*net.UnixConn), out: &stream{}, err: &stream{}, gone: make(chan struct{}), forks: make(map[ids.WorkerID]*fork)}
	if m := l.mirror(job); m != nil {
		prefix := "(template/" + job.String() + ") "
		t.out.lines, t.err.lines = &lines{to: m, prefix: prefix}, &lines{to: m, prefix: prefix}
	}
	t.cmd = &exec.Cmd{
		Path: p.exe, Args: append([]string{p.exe}, p.args...), Dir: l.cfg.Dir, Env: append(slices.Clone(p.env), fmt.Sprintf("%s=%d", EnvTemplate, templateFD), l.guard.Environ(t.name)),
		Stdout: t.out, Stderr: t.err, ExtraFiles: []*os.File{theirs}, WaitDelay: time.Second,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	if err := t.cmd.Start(); err != nil {
		_ = t.conn.Close() // err is the reason
		return nil, err
	}
	t.guard.Begin(t.name, t.cmd.Process.Pid)
	l.watch.Go(t.read)
	return t, nil
}

// read takes what the template says until it ends, and reaps it.
func (t *template) read() {
	buf := make([]byte, maxDatagram)
	for {
		n, err := t.conn.Read(buf)
		if err != nil || n == 0 {
			break
		}
		var m fromTemplate
		if json.Unmarshal(buf[:n], &m) == nil {
			t.handle(m)
		}
	}
	_ = t.conn.Close() // no more requests
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	overdue := time.AfterFunc(templateGrace, func() { _ = unix.Kill(-t.cmd.Process.Pid, unix.SIGKILL) })
	pidfd.Until(context.Background(), t.cmd.Process.Pid) // holds no thread, unlike Wait
	overdue.Stop()
	_ = unix.Kill(-t.cmd.Process.Pid, unix.SIGKILL) // while its zombie keeps the number from being used again
	_ = t.cmd.Wait()                                // its output says why it ended
	t.guard.End(t.name)
	t.out.Close()
	t.err.Close()
	close(t.gone)
}

func (t *template) handle(m fromTemplate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.forks[m.ID]
	if f == nil {
		return
	}
	switch m.Op {
	case "forked":
		put(f.forked, m.PID)
	case "failed":
		f.err = errors.New(m.Error)
		put(f.forked, 0)
		delete(t.forks, m.ID)
	case "exited":
		e := pool.Exit{PID: m.PID, Status: m.Status, Signal: m.Signal}
		if s := unix.SignalNum("SIG" + m.Signal); s != 0 {
			e.Signal = s.String()
		}
		put(f.exited, e)
		delete(t.forks, m.ID)
	}
	t.endIfDone()
}

// endIfDone ends a template that is no longer wanted with its last worker. The lock is held.
func (t *template) endIfDone() {
	if t.ending && len(t.forks) == 0 {
		_ = t.conn.Close() // nobody needs later messages
	}
}

// put sends v to the waiter; a second value is dropped.
func put[T any](c chan T, v T) {
	select {
	case c <- v:
	default:
	}
}

// ended tells whether the template forks no more workers; its workers may still live.
func (t *template) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// why is the error for a worker that the template should have started: why it is gone.
func (t *template) why() error {
	return fmt.Errorf("the template process of job %v (pid %d) ended (%v): %s", t.job, t.cmd.Process.Pid, t.cmd.ProcessState, t.err.Tail())
}

// ask asks for a worker. Its output goes to the two files.
func (t *template) ask(w ids.WorkerID, env []string, out, err *os.File) (*fork, error) {
	m := toTemplate{Op: "fork", ID: w, Env: make(map[string]string)}
	for _, kv := range env {
		k, v, _ := strings.Cut(kv, "=")
		m.Env[k] = v
	}
	data, e := json.Marshal(m)
	if e != nil {
		return nil, e
	}
	f := &fork{forked: make(chan int, 1), exited: make(chan pool.Exit, 1)}
	t.mu.Lock()
	t.forks[w] = f
	t.mu.Unlock()
	e = t.conn.SetWriteDeadline(time.Now().Add(templateGrace))
	if e == nil {
		_, _, e = t.conn.WriteMsgUnix(data, unix.UnixRights(int(out.Fd()), int(err.Fd())), nil)
	}
	if e != nil {
		t.mu.Lock()
		delete(t.forks, w) // else the template would wait for its exit
		t.closed = t.closed || errors.Is(e, net.ErrClosed) || errors.Is(e, unix.EPIPE) || errors.Is(e, unix.ECONNRESET)
		t.endIfDone()
		t.mu.Unlock()
		return nil, fmt.Errorf("the template process of job %v (pid %d) cannot be asked for a worker: %w: %s", t.job, t.cmd.Process.Pid, e, t.err.Tail())
	}
	return f, nil
}

// EndJob ends the job's templates once their workers are gone; the pool ends those.
func (l *Launcher) EndJob(job ids.JobID) {
	var ended []*template
	l.mu.Lock()
	for k, t := range l.templates {
		if k.job == job {
			ended = append(ended, t)
			delete(l.templates, k)
		}
	}
	l.mu.Unlock()
	for _, t := range ended {
		t.end()
	}
}

// end lets a template end with its last worker.
func (t *template) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
	t.endIfDone()
}
