package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mobula/internal/errs"
	"mobula/internal/pidfd"
)

// Node is the process of a node that rules kill and freeze.
type Node interface {
	Restart() error // kills it without notice, starts it again, and returns when it is up
	Freeze() error
	Thaw() error
}

// Plan decides for all processes of a test. It is a Decider.
type Plan struct {
	seed  uint64
	rules []Rule
	err   error

	mu      sync.Mutex
	core    *core                    // guarded by mu
	holds   map[string]chan struct{} // guarded by mu: by place, closed by Release
	reached map[string]int           // guarded by mu
	news    chan struct{}            // guarded by mu: closed when a place is reached
	events  []Event                  // guarded by mu
	wrong   []error                  // guarded by mu
	frozen  map[int]*frozen          // guarded by mu: by process
	node    Node                     // guarded by mu
	thaw    *time.Timer              // guarded by mu: of the node; nil: it runs, or is frozen until Thaw
	quiet   bool                     // guarded by mu
	calm    chan struct{}            // closed with it
	server  *server                  // guarded by mu
}

type frozen struct {
	p     *pidfd.Process
	timer *time.Timer // nil: until Thaw
}

var _ Decider = (*Plan)(nil)

// New makes a plan; Start reports its mistakes.
func New(seed uint64, rules []Rule) *Plan {
	p := &Plan{
		seed: seed, rules: rules, core: newCore(seed, rules), holds: make(map[string]chan struct{}), reached: make(map[string]int),
		news: make(chan struct{}), calm: make(chan struct{}), frozen: make(map[int]*frozen),
	}
	for i, r := range rules {
		if err := r.check(); err != nil {
			p.err = errors.Join(p.err, fmt.Errorf("rule %d: %w", i, err))
		}
	}
	return p
}

// Seed is the seed of the plan's random decisions.
func (p *Plan) Seed() uint64 { return p.seed }

// Wants implements Decider.
func (p *Plan) Wants(k Kind, name string) bool { return wants(p.rules, k, name) }

func wants(rules []Rule, k Kind, name string) bool {
	if k == Place {
		return true
	}
	for _, r := range rules {
		if r.At.Kind == k && (r.At.Name == "" || name == "" || r.At.Name == name) {
			return true
		}
	}
	return false
}

// Ask implements Decider.
func (p *Plan) Ask(ctx context.Context, s Site, who Subject) Decision {
	d, _ := p.ask(ctx, s, who)
	return d
}

// ask also tells whether the process of who was killed.
func (p *Plan) ask(ctx context.Context, s Site, who Subject) (d Decision, killed bool) {
	p.mu.Lock()
	if p.quiet {
		p.mu.Unlock()
		return Decision{}, false
	}
	ev, hit := p.core.step(s, who)
	if hit {
		p.events = append(p.events, ev)
	}
	var hold chan struct{}
	if s.Kind == Place {
		hold = p.holds[s.Name]
		if hold == nil && hit && (ev.Do == Freeze || ev.Do == FreezeNode) {
			defer func() { // a waiter that is told before the freeze could thaw too early
				p.mu.Lock()
				defer p.mu.Unlock()
				p.arrived(s.Name)
			}()
		} else {
			p.arrived(s.Name)
		}
	}
	p.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
		}
	}
	if !hit {
		return Decision{}, false
	}
	return p.carryOut(ev, who)
}

// arrived tells the waiters that a place was reached. mu is held.
func (p *Plan) arrived(place string) {
	p.reached[place]++
	close(p.news)
	p.news = make(chan struct{})
}

// carryOut makes a fault in other processes, and returns the part that the asker makes itself.
func (p *Plan) carryOut(ev Event, who Subject) (d Decision, killed bool) {
	var err error
	switch {
	case ev.Do == Crash && ev.Site.Kind != Component:
		err = p.signal(who, unix.SIGKILL)
		killed = err == nil
	case ev.Do == Freeze:
		err = p.freeze(who, ev.For)
	case ev.Do == KillNode:
		err = p.ofNode(Node.Restart)
	case ev.Do == FreezeNode:
		if err = p.ofNode(Node.Freeze); err == nil && ev.For > 0 {
			p.mu.Lock()
			p.thaw = time.AfterFunc(ev.For, func() { p.note(p.ofNode(Node.Thaw)) })
			p.mu.Unlock()
		}
	default:
		return ev.Decision, false
	}
	if err != nil && !errors.Is(err, pidfd.ErrGone) {
		p.note(fmt.Errorf("chaos: %s at %v: %w", ev.Do, ev.Site, err))
	}
	return Decision{}, killed
}

// note keeps the error of a fault that could not be made.
func (p *Plan) note(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet {
		p.wrong = append(p.wrong, err)
	}
}

func (p *Plan) ofNode(f func(Node) error) error {
	p.mu.Lock()
	n := p.node
	p.mu.Unlock()
	if n == nil {
		return errs.New(errs.CodeInvalid, "no node process belongs to the plan")
	}
	return f(n)
}

// open finds the process to make the fault in.
func (who Subject) open() (*pidfd.Process, error) {
	if !who.Worker || who.PID == os.Getpid() || who.PID <= 1 {
		return nil, errs.New(errs.CodeInvalid, "it is not in a worker process, and the test's own is spared")
	}
	return pidfd.Open(who.PID)
}

func (p *Plan) signal(who Subject, sig unix.Signal) error {
	w, err := who.open()
	if err != nil {
		return err
	}
	defer w.Close()
	return w.Kill(sig)
}

func (p *Plan) freeze(who Subject, d time.Duration) error {
	w, err := who.open()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.frozen[who.PID]; old != nil {
		p.release(who.PID, old)
	}
	if err := w.Kill(unix.SIGSTOP); err != nil {
		w.Close()
		return err
	}
	f := &frozen{p: w}
	p.frozen[who.PID] = f
	if d > 0 {
		f.timer = time.AfterFunc(d, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.frozen[who.PID] == f {
				p.release(who.PID, f)
			}
		})
	}
	return nil
}

// release lets a frozen process go on. Called with mu held.
func (p *Plan) release(pid int, f *frozen) {
	if f.timer != nil {
		f.timer.Stop()
	}
	_ = f.p.Kill(unix.SIGCONT) // it may be gone
	f.p.Close()
	delete(p.frozen, pid)
}

// Thaw lets every frozen process go on.
func (p *Plan) Thaw() {
	p.mu.Lock()
	for pid, f := range p.frozen {
		p.release(pid, f)
	}
	if p.thaw != nil {
		p.thaw.Stop()
		p.thaw = nil
	}
	n := p.node
	p.mu.Unlock()
	if n != nil {
		p.note(n.Thaw())
	}
}

// Hold makes whoever reaches the place from now on wait there.
func (p *Plan) Hold(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds[place] == nil && !p.quiet {
		p.holds[place] = make(chan struct{})
	}
}

// Release lets those that wait at the place go on, and ends the hold.
func (p *Plan) Release(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.releaseHold(place)
}

func (p *Plan) releaseHold(place string) {
	if ch := p.holds[place]; ch != nil {
		close(ch)
		delete(p.holds, place)
	}
}

// Reached waits until the place has been reached that many times since the plan was made. Those that a rule freezes there
// are frozen when it returns.
func (p *Plan) Reached(ctx context.Context, place string, times int) error {
	for {
		p.mu.Lock()
		n, news := p.reached[place], p.news
		p.mu.Unlock()
		if n >= times {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("chaos: place %q was reached %d times, not %d: %w", place, n, times, context.Cause(ctx))
		}
	}
}

// Count is how often the place has been reached.
func (p *Plan) Count(place string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached[place]
}

// Events are the faults made so far, in the order of their decisions.
func (p *Plan) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Event(nil), p.events...)
}

// Wrong has the faults that could not be made.
func (p *Plan) Wrong() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.wrong...)
}

// Unused are the rules that hit nothing.
func (p *Plan) Unused() []Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Rule
	for _, r := range p.core.rules {
		if r.hits == 0 {
			out = append(out, r.Rule)
		}
	}
	return out
}

// Check gives the mistakes in the plan, for a runtime of the mode.
func (p *Plan) Check(m Mode) error {
	all := []error{p.err}
	for _, r := range p.rules {
		all = append(all, r.can(m))
	}
	return errors.Join(all...)
}

// Open makes the plan this process' own, with a socket for others; opened is false if it was open already.
func (p *Plan) Open() (opened bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		return false, nil
	}
	if !Activate(&Injector{D: p, Who: Subject{PID: os.Getpid()}}) {
		return false, errs.New(errs.CodeInvalid, "chaos: another plan is in use in this process: tests with faults do not run in parallel")
	}
	if p.server, err = listen(p); err != nil {
		Deactivate(p)
	}
	return err == nil, err
}

// Address implements Decider.
func (p *Plan) Address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return ""
	}
	return p.server.path
}

// Calm implements Decider.
func (p *Plan) Calm() <-chan struct{} { return p.calm }

// Attach lets the plan's rules act on the process of a node.
func (p *Plan) Attach(n Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.node = n
}

// Quiet ends all faults: no more are made, nobody is held, and frozen processes go on.
func (p *Plan) Quiet() {
	p.mu.Lock()
	if !p.quiet {
		p.quiet = true
		close(p.calm)
	}
	for place := range p.holds {
		p.releaseHold(place)
	}
	p.mu.Unlock()
	p.Thaw()
}

// Close ends the plan.
func (p *Plan) Close() error {
	p.Quiet()
	Deactivate(p)
	p.mu.Lock()
	s := p.server
	p.server = nil
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.close()
}
