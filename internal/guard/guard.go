package guard

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/pidfd"
)

// retryFirst is how long the replacement of an ended guard waits at first; it doubles each time, up to atLast.
const retryFirst, retryMax = time.Second, time.Minute

// Guard is the node's side. It is safe for concurrent use.
type Guard struct {
	life string // the node and its present life
	log  *slog.Logger
	wg   sync.WaitGroup
	over chan struct{} // closed by Close

	mu      sync.Mutex
	pipe    *os.File       // guarded by mu; nil: there is no guard
	process *os.Process    // guarded by mu; the guard, if there is a pipe
	groups  map[string]int // guarded by mu; process groups of live workers
	ran     bool           // guarded by mu: the first guard was started
	closed  bool           // guarded by mu
}

// New makes a guard for the workers of a node, known by a name without dots, colons and spaces that no other node has. Its process is started with the
// first worker.
func New(node string, log *slog.Logger) *Guard {
	return &Guard{life: node + "." + rand.Text(), log: log, over: make(chan struct{}), groups: make(map[string]int)}
}

// Environ is the variable to add to a worker's environment, in place of one with that name.
func (g *Guard) Environ(worker string) string { return Variable + "=" + marks(g.life, worker) }

// Prepare starts the guard if there never was one. Call it before the first worker, and not concurrently.
func (g *Guard) Prepare() {
	g.mu.Lock()
	first := !g.ran && !g.closed
	g.ran = true
	g.mu.Unlock()
	if first {
		cmd, err := g.start()
		g.wg.Go(func() { g.keep(cmd, err) })
	}
}

// Begin says that a worker runs in a process group.
func (g *Guard) Begin(worker string, group int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[worker] = group
	g.tell(fmt.Sprintf("%s %d\n", worker, group))
}

// End says that a worker and its process group are gone.
func (g *Guard) End(worker string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, worker)
	g.tell(worker + "\n")
}

// tell writes a line if it fits; the lock is held.
func (g *Guard) tell(line string) {
	if g.pipe == nil {
		return
	}
	conn, err := g.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Write(func(fd uintptr) bool { // a whole line is written, or none of it
		_, _ = unix.Write(int(fd), []byte(line)) // what it misses, it finds by the mark of the node
		return true
	})
}

// keep keeps a guard running until Close.
func (g *Guard) keep(cmd *exec.Cmd, err error) {
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		if err == nil {
			pidfd.Until(context.Background(), cmd.Process.Pid) // holds no thread, unlike Wait
			if err = cmd.Wait(); err != nil {
				err = fmt.Errorf("%w: %s", err, cmd.Stderr)
			}
			g.mu.Lock()
			g.closePipe()
			g.mu.Unlock()
		}
		select {
		case <-g.over:
			return
		default:
			g.log.Warn("no guard runs: what tasks start may outlive a node that is killed now", "err", err, "again_in", wait)
		}
		select {
		case <-time.After(wait):
		case <-g.over:
			return
		}
		cmd, err = g.start()
	}
}

func (g *Guard) start() (*exec.Cmd, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // the guard has it, or has failed to start
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"mobula-guard"}, Env: []string{envGuard + "=" + g.life}, Dir: "/", Stdin: r, Stderr: &firstOutput{},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // signals to the node's group or terminal must not reach it
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := cmd.Start(); err != nil {
		_ = w.Close()
		return nil, err
	}
	g.pipe, g.process = w, cmd.Process
	for worker, group := range maps.All(g.groups) {
		g.tell(fmt.Sprintf("%s %d\n", worker, group))
	}
	if g.closed {
		g.closePipe()
	}
	return cmd, nil
}

// closePipe closes the pipe; the lock is held.
func (g *Guard) closePipe() {
	if g.pipe != nil {
		_ = g.pipe.Close() // the end of the pipe is the message
		g.pipe = nil
	}
}

// PID is the guard's process, or 0 if there is none now.
func (g *Guard) PID() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe == nil {
		return 0
	}
	return g.process.Pid
}

// Close makes the guard kill all remaining processes, and waits until it has and is gone.
func (g *Guard) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.over)
	}
	process := g.process
	g.closePipe()
	g.mu.Unlock()
	done := make(chan struct{})
	go func() { g.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if process == nil {
			return ctx.Err()
		}
		_ = process.Kill() // it may be stopped, or gone already
		<-done
		return fmt.Errorf("the guard of the node's workers (pid %d) did not end: %w", process.Pid, ctx.Err())
	}
}

// firstOutput keeps the first output of a guard, which says why it has failed.
type firstOutput struct{ said []byte }

func (w *firstOutput) Write(b []byte) (int, error) {
	w.said = append(w.said, b[:min(len(b), 1<<10-len(w.said))]...)
	return len(b), nil
}

func (w *firstOutput) String() string { return string(w.said) }
