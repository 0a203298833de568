package proc

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mobula/internal/errs"
	"mobula/internal/guard"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/raylet/sched"
)

// The environment of a worker.
const (
	EnvSocket = "MOBULA_WORKER_SOCKET" // path of the node's socket
	EnvToken  = "MOBULA_WORKER_TOKEN"  // hexadecimal; goes into Hello.Token as bytes
	EnvID     = "MOBULA_WORKER_ID"     // the number N of worker/N
	EnvJob    = "MOBULA_WORKER_JOB"
	EnvKind   = "MOBULA_WORKER_KIND"  // "tasks", "actors" or "isolated"
	EnvFunc   = "MOBULA_WORKER_FUNC"  // of an isolated worker
	EnvChaos  = "MOBULA_WORKER_CHAOS" // socket of a test's plan of faults
	envPrefix = "MOBULA_WORKER_"
)

// Defaults.
const (
	DefaultLogMB   = 100
	DefaultLogs    = 5
	TailSize       = 4 << 10 // bytes of stderr that errors quote
	memoryLimitPct = 90      // GOMEMLIMIT in % of the memory that an isolated worker asked for: the rest is not heap
)

// Config configures a Launcher.
type Config struct {
	Exe  string   // empty: /proc/self/exe, the running file even if it was replaced meanwhile
	Args []string // without the program; nil: this process' own
	// Program gives the program that a job's workers of a language run; nil, or the zero Program: Exe and Args.
	Program func(job ids.JobID, language string) (Program, error)
	Env     []string // used without a Program; nil: this process' own
	More    []string // added to every worker's environment
	Dir     string   // working directory; empty: this process' own
	Socket  string
	Node    string       // the node's identity, as package guard takes it; empty: one for this launcher
	Log     *slog.Logger // nil: nothing is logged
	LogDir  string       // empty: output is dropped, except the tail
	LogMB   int          // of one file
	Logs    int          // files kept for each stream, including the current one
	Chaos   string       // the socket of a test's plan of faults; empty: there is none
	// Mirror also gets the workers' output, line by line, each line after its worker's name; may be nil. If it
	// blocks it holds up the workers that write.
	Mirror io.Writer
	// MirrorOf gives what takes the place of Mirror for a job; nil: Mirror does. Several goroutines write to it, whole lines each.
	MirrorOf func(ids.JobID) io.Writer
	// Post takes StartFailed and Exited. It must not block, and is called from several goroutines.
	Post func(pool.Event)
}

// Program is what the workers of one language of a job run.
type Program struct {
	File     *os.File // the executable, which the launcher closes; nil: Exe
	Exe      string   // its path, or name to look for in PATH
	Args     []string
	Env      []string // the environment of its workers, which get nothing of this process' own
	Template bool     // the program is a template, which forks the workers
}

// Launcher starts and watches processes. It is safe for concurrent use.
type Launcher struct {
	cfg   Config
	all   *mirror       // nil: no Mirror
	jobs  chan *process // to the thread that forks
	guard *guard.Guard

	forked int // templates that were started; only used by the thread
	watch  sync.WaitGroup

	mu        sync.Mutex
	procs     map[ids.WorkerID]*process // guarded by mu
	templates map[templateKey]*template // guarded by mu
	closed    bool                      // guarded by mu
	names     names                     // guarded by mu
}

// New makes a launcher, and its thread.
func New(cfg Config) (*Launcher, error) {
	if cfg.Post == nil || cfg.Socket == "" {
		return nil, errs.New(errs.CodeInvalid, "worker launcher: socket %q, Post given %v; both are needed", cfg.Socket, cfg.Post != nil)
	}
	cfg.Exe = cmp.Or(cfg.Exe, "/proc/self/exe")
	if cfg.Node == "" {
		cfg.Node = rand.Text()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Args == nil {
		cfg.Args = os.Args[1:]
	}
	if cfg.Env == nil {
		cfg.Env = os.Environ()
	}
	cfg.LogMB, cfg.Logs = cmp.Or(cfg.LogMB, DefaultLogMB), cmp.Or(cfg.Logs, DefaultLogs)
	l := &Launcher{cfg: cfg, jobs: make(chan *process, 64), procs: make(map[ids.WorkerID]*process), templates: make(map[templateKey]*template)}
	l.guard = guard.New(cfg.Node, cfg.Log)
	if cfg.Mirror != nil {
		l.all = &mirror{out: cfg.Mirror}
	}
	l.watch.Go(l.thread)
	return l, nil
}

// mirror gives who copies the output of a job's workers; nil: nobody does.
func (l *Launcher) mirror(job ids.JobID) *mirror {
	if l.cfg.MirrorOf != nil {
		if w := l.cfg.MirrorOf(job); w != nil {
			return &mirror{out: w}
		}
	}
	return l.all
}

// thread forks all processes: they die with the thread that forked them, so it lives as long as
// the launcher.
func (l *Launcher) thread() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	starts := 0
	for p := range l.jobs {
		if starts++; starts%pruneEvery == 1 && l.cfg.LogDir != "" {
			prune(l.cfg.LogDir, func(w ids.WorkerID) bool { return l.find(w) != nil }, maxDeadFiles, maxDeadBytes)
		}
		l.guard.Prepare()
		err := l.begin(p)
		p.closeFile()
		if err != nil {
			l.forget(p)
			close(p.gone)
			l.cfg.Post(pool.StartFailed{Worker: p.spec.Worker, Err: err})
			continue
		}
		l.watch.Go(func() {
			exit, err := p.wait()
			l.forget(p)
			close(p.gone)
			if err != nil {
				l.cfg.Post(pool.StartFailed{Worker: p.spec.Worker, Err: err})
				return
			}
			l.cfg.Post(pool.Exited{Worker: p.spec.Worker, Exit: exit})
		})
	}
}

// begin starts a worker, through its job's template if it has one.
func (l *Launcher) begin(p *process) error {
	if !p.template {
		return p.start(nil)
	}
	for again := false; ; again = true {
		t, err := l.template(templateKey{p.spec.Job, p.spec.Language}, p)
		if err != nil {
			return err
		}
		if err = p.start(t); err == nil || again || !t.ended() {
			return err
		} // the template has just ended and was not asked: another will do
	}
}

// Start starts a worker. It is answered through Post.
func (l *Launcher) Start(s pool.StartProcess) {
	own := l.ownEnviron(s)
	p := &process{spec: s, cfg: &l.cfg, guard: l.guard, mirror: l.mirror(s.Job), own: own, exe: l.cfg.Exe, name: os.Args[0], args: l.cfg.Args, gone: make(chan struct{})}
	if err := p.choose(); err != nil {
		go l.cfg.Post(pool.StartFailed{Worker: s.Worker, Err: fmt.Errorf("the %s program of job %v: %w", s.Language, s.Job, err)})
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		p.closeFile()
		go l.cfg.Post(pool.StartFailed{Worker: s.Worker, Err: errs.New(errs.CodeShutdown, "the node is stopping")})
		return
	}
	l.procs[s.Worker] = p
	select {
	case l.jobs <- p:
	default: // the pool never starts that many at once
		delete(l.procs, s.Worker)
		p.closeFile()
		go l.cfg.Post(pool.StartFailed{Worker: s.Worker, Err: fmt.Errorf("%d starts under way", cap(l.jobs))})
	}
}

// Kill sends SIGKILL to the worker's process group; a worker that is being started is killed then.
func (l *Launcher) Kill(w ids.WorkerID) {
	if p := l.find(w); p != nil {
		p.kill()
	}
}

// Terminate sends SIGTERM to the worker.
func (l *Launcher) Terminate(w ids.WorkerID) {
	if p := l.find(w); p != nil {
		p.terminate()
	}
}

// Registered notes the worker's client, for Live.
func (l *Launcher) Registered(w ids.WorkerID, c ids.ClientID) {
	if p := l.find(w); p != nil {
		p.mu.Lock()
		p.client = c
		p.mu.Unlock()
	}
	l.mu.Lock()
	l.names.note(c, w)
	l.mu.Unlock()
}

// Draining notes that the worker was told to exit, for Live.
func (l *Launcher) Draining(w ids.WorkerID) {
	if p := l.find(w); p != nil {
		p.mu.Lock()
		p.draining = true
		p.mu.Unlock()
	}
}

// Live lists the processes, for a new core of the pool.
func (l *Launcher) Live() []pool.Live {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []pool.Live
	for _, p := range l.procs {
		p.mu.Lock()
		out = append(out, pool.Live{StartProcess: p.spec, Client: p.client, PID: int32(p.pid), Draining: p.draining})
		p.mu.Unlock()
	}
	slices.SortFunc(out, func(a, b pool.Live) int { return cmp.Compare(a.Worker, b.Worker) })
	return out
}

// Templates lists the processes that workers are forked from.
func (l *Launcher) Templates() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]int, 0, len(l.templates))
	for _, t := range l.templates {
		out = append(out, t.cmd.Process.Pid)
	}
	return out
}

func (l *Launcher) find(w ids.WorkerID) *process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.procs[w]
}

func (l *Launcher) forget(p *process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.procs, p.spec.Worker)
}

// Leave waits until the workers are gone, which were told that the node ends; ctx bounds the wait. Those for actors close them. Those for tasks that are still at
// work after a while are terminated. After it no worker is started.
func (l *Launcher) Leave(ctx context.Context) {
	var all, tasks []*process
	l.mu.Lock()
	l.closeLocked()
	for _, p := range l.procs {
		all = append(all, p)
		if p.spec.Slot != sched.SlotActor && !p.spec.Actor {
			tasks = append(tasks, p)
		}
	}
	l.mu.Unlock()
	alone, cancel := context.WithTimeout(ctx, pool.LeaveAlone)
	awaitGone(alone, tasks)
	cancel()
	for _, p := range tasks {
		p.terminate()
	}
	awaitGone(ctx, all)
}

func awaitGone(ctx context.Context, all []*process) {
	for _, p := range all {
		select {
		case <-p.gone:
		case <-ctx.Done():
			return
		}
	}
}

func (l *Launcher) closeLocked() {
	if !l.closed {
		l.closed = true
		close(l.jobs)
	}
}

// Close kills what is left and waits until it is gone; ctx bounds the wait. Exits are still posted.
func (l *Launcher) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closeLocked()
	for _, t := range l.templates {
		_ = t.conn.Close() // it ends
	}
	for _, p := range l.procs {
		p.kill()
	}
	l.mu.Unlock()
	done := make(chan struct{})
	go func() { l.watch.Wait(); close(done) }()
	select {
	case <-done:
		return l.guard.Close(ctx)
	case <-ctx.Done():
		_ = l.guard.Close(ctx) // requests to it were sent
		return fmt.Errorf("%d workers were killed and are not gone: %w", len(l.Live()), ctx.Err())
	}
}

// environ is the environment that a program's workers share: the program's and the configured one, without variables that would
// identify them as other workers.
func (c *Config) environ(program []string) []string {
	return slices.DeleteFunc(slices.Concat(program, c.More), func(kv string) bool {
		return strings.HasPrefix(kv, envPrefix) || strings.HasPrefix(kv, EnvTemplate+"=") || strings.HasPrefix(kv, guard.Variable+"=")
	})
}

// ownEnviron has the variables that tell a worker what it is.
func (l *Launcher) ownEnviron(s pool.StartProcess) []string {
	kind := map[sched.Slot]string{sched.SlotTask: "tasks", sched.SlotActor: "actors", sched.SlotOwn: "isolated"}[s.Slot]
	env := []string{
		EnvSocket + "=" + l.cfg.Socket,
		EnvToken + "=" + hex.EncodeToString(s.Token),
		EnvID + "=" + s.Worker.String(),
		EnvJob + "=" + s.Job.String(),
		EnvKind + "=" + kind,
		l.guard.Environ(s.Worker.String()),
	}
	if l.cfg.Chaos != "" {
		env = append(env, EnvChaos+"="+l.cfg.Chaos)
	}
	if s.Func != "" {
		env = append(env, EnvFunc+"="+s.Func)
	}
	if s.Memory > 0 { // the collector works harder before the monitor has to end the process
		env = append(env, "GOMEMLIMIT="+strconv.FormatInt(s.Memory/100*memoryLimitPct, 10))
	}
	return env
}
