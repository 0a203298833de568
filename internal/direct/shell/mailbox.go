package shell

import (
	"reflect"
	"sync"

	"mobula/internal/direct"
	"mobula/internal/errs"
)

// Config says what a Mailbox is for.
type Config struct {
	direct.HostConfig
	Instance direct.Instance
	Run      Run
	Up       HostUp
	Spawn    func(f func()) bool // starts a goroutine; false: nothing more is to start
}

// Run runs a call, on a goroutine of the mailbox, and fills in how it ended: the fields of Finished but Call and Bytes. What is filled in counts even if Run ends its
// goroutine.
type Run func(in *direct.Incoming, f *direct.Finished)

// HostUp is what the process of an actor tells its node and the owner of the job, and the calls that run. All but HandOver is called under the Mailbox's lock: it
// only notes what is to be done, and calls nothing of this package.
type HostUp interface {
	Answered(f direct.HostEffect) // on a channel that is no link of this process, or none any more; SayLast too, of Channel 0 also where a core cannot say it
	TellOwner(f direct.HostEffect)
	NotHere(f direct.HostEffect)
	Fallen(f direct.HostEffect) // Call is nil where it was no call's fault
	Begun(f direct.HostEffect)  // on such a channel
	Interrupt(f direct.HostEffect)
	Ran(in *direct.Incoming)                  // its Run is over: it is not interrupted any more
	HandOver()                                // without a lock, soon after one of the others but Begun, Ran and Panicked: what they have noted is to be done, in order
	Panicked(event string, reason any, n int) // a core has panicked, for the n-th time, on an event of that type
}

// Mailbox drives an instance of an actor: what it has to do, and the goroutines that do it.
type Mailbox struct {
	cfg Config

	mu     sync.Mutex
	core   *direct.Host
	memory *direct.HostMemory
	links  map[direct.Channel]*link // guarded by mu
	last   *link                    // guarded by mu: of links, that something was for
	after  after                    // guarded by mu: what this step leaves to be done
	quiet  []*link                  // guarded by mu: with mail that nobody waits for, to be delivered with more
	runner *runner                  // guarded by mu: steps the core just now, and takes the next call; nil: others do
	parked []*runner                // guarded by mu
	idle   int                      // guarded by mu: sweeps without a call
	closed bool                     // guarded by mu: goroutines with nothing to run end
	listed bool                     // guarded by mu: it is among those that are to hand over
	next   *Mailbox                 // of these; guarded by mu until listed, then of who has the list
}

// NewMailbox makes that of an instance that has just been constructed.
func NewMailbox(cfg Config) *Mailbox {
	m := &Mailbox{cfg: cfg, memory: direct.NewHostMemory(), links: make(map[direct.Channel]*link)}
	m.core = direct.NewHost(cfg.HostConfig, m.memory)
	return m
}

// Tell takes an event: of a channel that is no link of this process, of the node, or of the owner.
func (m *Mailbox) Tell(e direct.HostEvent) {
	m.mu.Lock()
	m.step(e)
	later := m.takeAfter()
	m.mu.Unlock()
	later.do()
}

// Arrive takes calls that have come on a channel that is no link of this process, all before one of them can end.
func (m *Mailbox) Arrive(ch direct.Channel, calls []*direct.Incoming) {
	m.mu.Lock()
	for _, in := range calls {
		m.step(&direct.Arrived{Channel: ch, Call: in})
	}
	later := m.takeAfter()
	m.mu.Unlock()
	later.do()
}

func (m *Mailbox) link(l *link) after {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links[l.id] = l
	m.step(direct.Linked{Channel: l.id})
	return m.takeAfter()
}

func (m *Mailbox) unlink(l *link) after {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.links, l.id)
	m.last = nil
	m.step(direct.Unlinked{Channel: l.id})
	return m.takeAfter()
}

func (m *Mailbox) unwanted(l *link, f *direct.Effect) after {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step(direct.Unwanted{Channel: l.id, No: f.No, Wish: f.Wish, Unbegun: f.Outcome})
	return m.takeAfter()
}

// step takes an event, and does what follows. The lock is held.
func (m *Mailbox) step(e direct.HostEvent) {
	effects, ok := m.try(e, 1)
	if !ok {
		m.rebuild()
		if effects, ok = m.try(e, 2); !ok {
			m.rebuild()
			m.giveUp(e)
			return
		}
	}
	for i := range effects {
		m.do(&effects[i])
	}
	clear(effects) // what they have is not kept until the next step
}

// try has the core take an event; false: it has panicked, and is of no use any more.
func (m *Mailbox) try(e direct.HostEvent, n int) (effects []direct.HostEffect, ok bool) {
	defer func() {
		if !ok {
			m.cfg.Up.Panicked(reflect.TypeOf(e).String(), recover(), n)
		}
	}()
	return m.core.Step(0, e), true
}

// rebuild makes a core of what the last one has left.
func (m *Mailbox) rebuild() { m.core = direct.NewHost(m.cfg.HostConfig, m.memory) }

// giveUp leaves an event out that has brought two cores down. The instance ends, since nobody knows what it would have come to: calls are told how far they have come.
// If that brings cores down too, processes that call are told that nothing follows, and ask the node; and so is its user.
func (m *Mailbox) giveUp(e direct.HostEvent) {
	if _, stops := e.(direct.Stopping); stops {
		for _, l := range m.links {
			m.post(l, mail{last: true}, false)
		}
		m.up().Answered(direct.HostEffect{Do: direct.SayLast})
		return
	}
	err := errs.New(errs.CodeComponentFailed, "what runs the calls of an instance of an actor was brought down twice by one event: the log says how")
	m.up().Fallen(direct.HostEffect{Do: direct.Fallen, Outcome: &direct.Outcome{Err: err}})
	m.step(direct.Stopping{})
}

func (m *Mailbox) do(f *direct.HostEffect) {
	switch f.Do {
	case direct.Run:
		if l := m.linkOf(f.Channel); l != nil {
			l.begins(f.Call.Group, f.No)
		} else {
			m.cfg.Up.Begun(*f)
		}
		m.start(f.Call)
	case direct.Interrupt:
		m.up().Interrupt(*f)
	case direct.Answer:
		l := m.linkOf(f.Channel)
		if l == nil {
			m.up().Answered(*f)
			return
		}
		m.post(l, mail{Answered: direct.Answered{Channel: f.Channel, No: f.No, AckNo: f.AckNo, Said: f.Said, Outcome: f.Outcome, Holds: f.Holds}}, quiet(f.Call))
	case direct.SayLast:
		if l := m.linkOf(f.Channel); l != nil {
			m.post(l, mail{last: true}, false)
		} else {
			m.up().Answered(*f)
		}
	case direct.TellOwner:
		m.up().TellOwner(*f)
	case direct.NotHere:
		m.up().NotHere(*f)
	case direct.Fallen:
		m.up().Fallen(*f)
	}
}

func (m *Mailbox) linkOf(ch direct.Channel) *link {
	if m.last == nil || m.last.id != ch {
		m.last = m.links[ch]
	}
	return m.last
}

// quietMost is how many answers that nobody waits for are told of at once, and quietBytes how large their calls are at most: they hold back that much credit.
const (
	quietMost  = 32
	quietBytes = 2 << 10
)

func quiet(in *direct.Incoming) bool {
	k, ok := in.Payload.(*Call)
	return ok && k.Quiet && k.Bytes <= quietBytes
}

// post sends an answer. One that nobody waits for goes with the next one that somebody does, or when the mailbox has nothing to run.
func (m *Mailbox) post(l *link, x mail, quiet bool) {
	l.out = append(l.out, x)
	switch {
	case l.listed:
	case quiet && m.runner != nil && len(l.out) < quietMost:
		if !l.quiet {
			l.quiet = true
			m.quiet = append(m.quiet, l)
		}
	default:
		l.listed = true
		m.after.add(l)
	}
}

// postQuiet sends what was held back.
func (m *Mailbox) postQuiet() {
	for i, l := range m.quiet {
		if l.quiet = false; !l.listed && len(l.out) > 0 {
			l.listed = true
			m.after.add(l)
		}
		m.quiet[i] = nil
	}
	m.quiet = m.quiet[:0]
}

// takeAfter gives what is to be done when the lock is given back.
func (m *Mailbox) takeAfter() after {
	a := m.after
	if !a.none() {
		m.after = after{}
	}
	return a
}
