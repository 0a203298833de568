package actors

import (
	"fmt"
	"slices"
	"time"

	"mobula/internal/errs"
)

// Core is a component's logic: no goroutine, clock, randomness or I/O of its own.
// now is in nanoseconds by the system's clock and never goes back. The slice
// returned is the core's; the shell is done with it before it calls Step again.
type Core[E, F any] interface {
	Step(now int64, ev E) []F
}

// Start says which incarnation New is asked to build.
type Start struct {
	Restart int   // 0 for the first core, then 1, 2, 3 ...
	Reason  error // why the core before it was discarded: wraps *PanicError; nil for the first
	Again   any   // the message on which a core panicked and that is delivered once more, behind the events that New returns; nil: none is
	Blamed  any   // of the events that New returned for the core before it, the one on which that panicked; nil: on none
}

// Spec describes one component. Only Kind, Name and New must be set.
type Spec[E, F any] struct {
	Kind string // what it is: "owner"; counters are kept by kind
	Name string // unique among the children of one parent: "owner/7"

	// New builds a core from the authoritative state, on the component's goroutine. The events it returns are
	// stepped before any of the mailbox. An error of the first call is Spawn's; an error of a later one counts as
	// a panic.
	New func(start Start) (Core[E, F], []E, error)

	// Do runs one effect, on the component's goroutine, after Step returned; it must
	// not block for long. nil if the core has no effects. self belongs to this core:
	// timers armed with it are cancelled when the core is discarded.
	Do func(self *Ref[E], f F)

	// Flush runs after a batch of messages (at most 256), before the component waits for its mailbox and before a
	// new core is built. It is for batched writes, such as a log's commit.
	Flush func()

	// Stop runs once, when the component's children have stopped and its mailbox is
	// drained.
	Stop func()

	// OnPoison gets the message on which two cores panicked in a row, and a *PoisonError, on the component's
	// goroutine; it may post to self.
	OnPoison func(self *Ref[E], ev E, err error)

	// Vital tells of a message that must not be dropped: it is the only word on something that others wait for, as that somebody is gone, and no core learns of that from
	// anywhere else. It is delivered until a core steps it, or the policy is exhausted. What a client can make up must not be vital. nil: no message is.
	Vital func(ev E) bool

	// Same tells whether an effect of a redelivered message is equal to one that has run already before Do
	// panicked, and so is skipped. nil skips none; see the package's documentation.
	Same func(ran, next F) bool

	Mailbox int    // bound in messages; 0 is DefaultMailbox. Post goes up to twice the bound
	Policy  Policy // of its restarts, and of its children's escalations
	Thread  bool   // run on an OS thread of its own; each wake-up then costs about 5 us more
}

// DefaultMailbox is the bound of a mailbox whose Spec names none, in messages.
const DefaultMailbox = 8192

func (s *Spec[E, F]) check() error {
	switch {
	case s.Kind == "" || s.Name == "":
		return errs.New(errs.CodeInvalid, "component kind %q, name %q: both must be set", s.Kind, s.Name)
	case s.New == nil:
		return errs.New(errs.CodeInvalid, "component %s: Spec.New is nil; it must build the core", s.Name)
	case s.Mailbox < 0:
		return errs.New(errs.CodeInvalid, "component %s: mailbox bound %d; it must be 0 (for %d) or more", s.Name, s.Mailbox, DefaultMailbox)
	}
	if err := s.Policy.check(); err != nil {
		return fmt.Errorf("component %s: %w", s.Name, err)
	}
	if s.Do == nil {
		name := s.Name
		s.Do = func(_ *Ref[E], f F) {
			panic(errs.New(errs.CodeInvalid, "component %s has an effect %T to run and no Spec.Do", name, f))
		}
	}
	if s.Mailbox == 0 {
		s.Mailbox = DefaultMailbox
	}
	s.Policy = s.Policy.withDefaults()
	return nil
}

// Strategy is which children a supervisor restarts when one has escalated to it.
type Strategy uint8

// The strategies.
const (
	OneForOne Strategy = iota // the child, with what is below it
	AllForOne                 // every child, with what is below them
)

// Policy bounds restarts. A component's policy counts its own panics and, separately, the escalations of its
// children. Beyond the policy the next parent is asked.
type Policy struct {
	MaxRestarts int           // within Window; 0 is 10, Unlimited, or NoRestarts
	Window      time.Duration // 0 is 10 s
	Backoff     time.Duration // before the first restart in Window; doubles with each; 0 is 1 ms
	MaxBackoff  time.Duration // 0 is 1 s
	Strategy    Strategy      // for children
}

// Values of Policy.MaxRestarts.
const (
	Unlimited  = -1 // never escalate
	NoRestarts = -2 // escalate at once
)

func (p Policy) check() error {
	if p.MaxRestarts < NoRestarts || p.Window < 0 || p.Backoff < 0 || p.MaxBackoff < 0 || p.Strategy > AllForOne {
		return errs.New(errs.CodeInvalid, "restart policy %+v: durations must not be negative, MaxRestarts not below %d, Strategy OneForOne or AllForOne", p, NoRestarts)
	}
	return nil
}

// The defaults are protoactor's own for its one-for-one strategy: 10 restarts in 10 s.
func (p Policy) withDefaults() Policy {
	if p.MaxRestarts == 0 {
		p.MaxRestarts = 10
	}
	if p.Window == 0 {
		p.Window = 10 * time.Second
	}
	if p.Backoff == 0 {
		p.Backoff = time.Millisecond
	}
	if p.MaxBackoff == 0 {
		p.MaxBackoff = time.Second
	}
	return p
}

// failures are those that count, by the system's clock, oldest first.
type failures struct {
	at      []int64
	stepped uint64 // messages that the component which failed last had stepped by then
}

// add counts a failure and tells whether the policy allows a restart, and after how long. A failure counts for the time of the window, and as long as the component does not
// get on: one that never comes up would else outlast every window, since the backoff grows.
func (f *failures) add(now int64, stepped uint64, p Policy) (backoff time.Duration, ok bool) {
	keep := f.at
	if stepped != f.stepped {
		keep = slices.DeleteFunc(keep, func(t int64) bool { return now-t >= int64(p.Window) })
	}
	// Without a bound on restarts the list still needs one: the backoff is at its maximum by then.
	if len(keep) >= 64 && p.MaxRestarts == Unlimited {
		keep = append(keep[:0], keep[1:]...)
	}
	f.at, f.stepped = append(keep, now), stepped
	n := len(f.at)
	if p.MaxRestarts != Unlimited && n > max(p.MaxRestarts, 0) {
		return 0, false
	}
	backoff = p.Backoff
	for i := 1; i < n && backoff < p.MaxBackoff; i++ {
		backoff *= 2
	}
	return min(backoff, p.MaxBackoff), true
}
