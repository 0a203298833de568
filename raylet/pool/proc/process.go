package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/DeRuina/timberjack"
	"golang.org/x/sys/unix"

	"mobula/internal/guard"
	"mobula/internal/ids"
	"mobula/raylet/pool"
)

// process is one worker process.
type process struct {
	exe      string
	name     string   // the name that the process is given as its own
	file     *os.File // the file that exe names, if it is a descriptor
	args     []string
	spec     pool.StartProcess
	cfg      *Config
	guard    *guard.Guard
	mirror   *mirror  // nil: nobody copies what it writes
	env      []string // environment of all workers of its program
	cmd      *exec.Cmd
	fd       *os.File // pidfd
	out      *stream
	err      *stream
	template bool          // exe is a template, which forks the process
	own      []string      // the part of its environment that differs between workers of a job
	asked    *forking      // forked by a template; nil: the launcher starts it
	gone     chan struct{} // closed when the process is gone or could not start

	mu       sync.Mutex
	pid      int // guarded by mu; 0 before it started and once it is reaped
	doomed   bool
	client   ids.ClientID
	draining bool
}

// choose finds what the process runs: the job's program, else the launcher's own.
func (p *process) choose() error {
	if p.cfg.Program == nil {
		p.env = p.cfg.environ(p.cfg.Env)
		return nil
	}
	g, err := p.cfg.Program(p.spec.Job, p.spec.Language)
	p.env = p.cfg.environ(g.Env)
	switch {
	case err != nil:
		return err
	case g.File != nil:
		p.file, p.exe, p.args = g.File, fmt.Sprintf("/proc/self/fd/%d", g.File.Fd()), g.Args
	case g.Exe != "":
		if p.exe, err = LookPath(g.Exe, p.env); err != nil {
			return err
		}
		p.name, p.args = p.exe, g.Args
	}
	p.template = g.Template
	return nil
}

// LookPath finds a program by the PATH of env, which need not be this process'.
func LookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return exec.LookPath(name)
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v // the last one counts
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(dir) {
			return file, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// start forks, or asks the template to. It runs on the launcher's thread.
func (p *process) start(t *template) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doomed {
		return errors.New("killed before it was started")
	}
	if t != nil {
		return p.startFork(t)
	}
	fd := -1
	p.out, p.err = p.stream("out"), p.stream("err")
	p.cmd = &exec.Cmd{
		Path: p.exe, Args: append([]string{p.name}, p.args...), Env: slices.Concat(p.env, p.own), Dir: p.cfg.Dir,
		Stdout: p.out, Stderr: p.err,
		WaitDelay:   time.Second, // a grandchild outside the group may hold the pipes
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &fd},
	}
	if err := p.cmd.Start(); err != nil {
		p.closeStreams()
		return err
	}
	p.pid = p.cmd.Process.Pid
	p.guard.Begin(p.spec.Worker.String(), p.pid)
	if fd >= 0 {
		if err := unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd) // cmd.Wait works without it
		} else {
			p.fd = os.NewFile(uintptr(fd), "pidfd")
		}
	}
	return nil
}

// closeFile gives up the executable's descriptor: the process has it, or never will.
func (p *process) closeFile() {
	if p.file != nil {
		_ = p.file.Close() // only ever read
	}
}

// wait returns once the process and its group are gone and the process is reaped. An error says that it never
// started.
func (p *process) wait() (pool.Exit, error) {
	if p.asked != nil {
		e, err := p.waitFork()
		e.Tail = p.err.Tail()
		return e, err
	}
	pid := p.cmd.Process.Pid
	p.awaitExit()
	p.mu.Lock()
	_ = unix.Kill(-pid, unix.SIGKILL) // while its zombie keeps the number from being used again
	p.pid = 0
	p.mu.Unlock()
	p.guard.End(p.spec.Worker.String())
	_ = p.cmd.Wait() // how it ended is in ProcessState
	if p.fd != nil {
		_ = p.fd.Close() // only ever polled
	}
	p.closeStreams()
	e := pool.Exit{PID: pid, Tail: p.err.Tail()}
	if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		e.Signal = st.Signal().String()
	} else {
		e.Status = p.cmd.ProcessState.ExitCode()
	}
	return e, nil
}

// awaitExit waits on the pidfd, which costs a goroutine and not a thread as wait4 would. Without a pidfd it
// returns at once, and cmd.Wait waits.
func (p *process) awaitExit() {
	if p.fd == nil {
		return
	}
	conn, err := p.fd.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = true
	if p.pid > 0 {
		_ = unix.Kill(-p.pid, unix.SIGKILL) // gone already: its exit tells
	}
}

func (p *process) terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining = true
	if p.pid > 0 {
		_ = unix.Kill(p.pid, unix.SIGTERM) // likewise
	}
}

func (p *process) stream(name string) *stream {
	s := &stream{}
	if p.mirror != nil {
		s.lines = &lines{to: p.mirror, prefix: "(worker/" + p.spec.Worker.String() + ") "}
	}
	if p.cfg.LogDir != "" {
		s.log = &timberjack.Logger{
			Filename: filepath.Join(p.cfg.LogDir, "worker-"+p.spec.Worker.String()+"."+name),
			MaxSize:  p.cfg.LogMB, MaxBackups: max(p.cfg.Logs-1, 1), FileMode: 0o600,
		}
	}
	return s
}

func (p *process) closeStreams() {
	p.out.Close()
	p.err.Close()
}

// stream takes the output of a process: it writes a log that rotates, and keeps the end in memory.
type stream struct {
	log   *timberjack.Logger
	lines *lines

	mu   sync.Mutex
	tail []byte // guarded by mu
}

// Write never fails: a worker must not stop because its log cannot be written.
func (s *stream) Write(b []byte) (int, error) {
	if s.log != nil {
		for rest := b; len(rest) > 0; { // a write larger than a file is refused by the log
			n := min(len(rest), 64<<10)
			if _, err := s.log.Write(rest[:n]); err != nil {
				break
			}
			rest = rest[n:]
		}
	}
	s.lines.write(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(b) >= TailSize {
		s.tail = append(s.tail[:0], b[len(b)-TailSize:]...)
	} else {
		if over := len(s.tail) + len(b) - TailSize; over > 0 {
			s.tail = append(s.tail[:0], s.tail[over:]...)
		}
		s.tail = append(s.tail, b...)
	}
	return len(b), nil
}

// Tail is the last TailSize bytes.
func (s *stream) Tail() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.tail)
}

func (s *stream) Close() {
	s.lines.end()
	if s.log != nil {
		_ = s.log.Close() // output that could not be written is lost anyway
	}
}
