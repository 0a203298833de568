package actors

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

// kept is the state that outlives the cores of a component.
type kept[E, F any] struct {
	spec   Spec[E, F]
	m      *mailbox[E]
	n      *node
	faults *atomic.Bool
	ready  chan error // the outcome of the first New
	first  E          // of the events that New returned: stepped last
	blamed any        // see Start
	ran    []F        // effects of the present message that had run when Do panicked
	now    int64
	dirty  bool // something ran since the last Flush
	built  bool // a first core was
}

// What a shell does at the moment, for the report of a panic.
const (
	inNew = iota
	inStart
	inStep
	inDo
	inFlush
	inNothing
)

var phaseNames = [...]string{"New", "start", "Step", "Do", "Flush", "supervision"}

// shell is the protoactor actor around one core; each core has a new one.
type shell[E, F any] struct {
	*kept[E, F]
	core    Core[E, F]
	self    *Ref[E]
	phase   int
	effect  int // index of the effect that runs
	effects []F // of the last Step
	since   int // messages since the last flush
}

func (k *kept[E, F]) incarnate() actor.Actor {
	k.m.inc++
	s := &shell[E, F]{kept: k, phase: inNothing, self: &Ref[E]{m: k.m, inc: k.m.inc}}
	k.m.shell = s
	return s
}

// Receive implements actor.Actor.
func (s *shell[E, F]) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *wakeUp:
		s.batch()
	case *actor.Started:
		s.started(ctx)
	case *actor.Restarting:
		s.flushQuietly()
		s.discard()
	case *actor.Stopping:
		s.stopping()
	case *actor.Stopped:
		s.n.finish(s.m.finish())
	}
}

// started builds the core and steps what New returned.
func (s *shell[E, F]) started(ctx actor.Context) {
	first := !s.built
	start := s.n.start(first)
	if start.Blamed, s.blamed = s.blamed, nil; s.m.redelivered {
		start.Again = s.m.batch[s.m.pos]
	}
	s.phase = inNew
	core, evs, err := s.build(first, start)
	if err != nil {
		if !first {
			panic(err)
		}
		s.phase = inNothing
		s.ready <- err
		ctx.Stop(ctx.Self())
		return
	}
	s.core, s.built = core, true
	kind := EventStarted
	if !first {
		kind = EventRestarted
	}
	s.n.sys.emit(s.n, Event{Kind: kind, Restarts: start.Restart, Err: start.Reason})
	if first {
		s.ready <- nil
	}
	s.phase = inStart
	s.tick()
	for _, ev := range evs {
		s.dirty, s.first = true, ev
		for _, f := range s.core.Step(s.now, ev) {
			s.spec.Do(s.self, f)
		}
	}
	s.flush()
	s.phase = inNothing
}

// build calls New. A panic in the first call is Spawn's error. A panic in a later one is the component's next
// failure.
func (s *shell[E, F]) build(first bool, start Start) (core Core[E, F], evs []E, err error) {
	if first {
		defer func() {
			if v := recover(); v != nil {
				err = s.n.panicError(phaseNames[inNew], "", v, nil)
			}
		}()
	}
	return s.spec.New(start)
}

// start counts the start of a core.
func (n *node) start(first bool) Start {
	n.sys.mu.Lock()
	defer n.sys.mu.Unlock()
	if first {
		return Start{}
	}
	n.nrestarts++
	n.sys.restarts[n.kind]++
	return Start{Restart: n.nrestarts, Reason: n.reason}
}

// batch steps the present batch, until it is done or a system message of protoactor waits.
func (s *shell[E, F]) batch() {
	m := s.m
	s.tick()
	s.dirty = true
	for m.pos < len(m.batch) {
		if m.attention.Load() {
			return
		}
		if m.pos%chunk == chunk-1 {
			m.account()
			s.tick()
		}
		s.message(m.batch[m.pos])
		s.next()
		if s.since++; s.since == flushEvery {
			s.flush()
			s.dirty = true
		}
	}
	s.flush()
}

// next ends the present message.
func (s *shell[E, F]) next() {
	s.m.pos++
	s.m.redelivered = false
	s.ran = nil
}

// message steps one event and runs its effects. It also handles what few events have: the core of a timer, a
// fault.
func (s *shell[E, F]) message(ev E) {
	if s.m.mpos < len(s.m.batchMetas) && s.stale() {
		return
	}
	if s.faults.Load() && s.fault(ev) {
		return
	}
	s.step(ev)
}

// stale tells whether the present event is a timer of a core that is gone.
func (s *shell[E, F]) stale() bool {
	m := s.m
	for m.mpos < len(m.batchMetas) && m.batchMetas[m.mpos].idx < m.pos {
		m.mpos++
	}
	if m.mpos == len(m.batchMetas) || m.batchMetas[m.mpos].idx != m.pos {
		return false
	}
	return m.batchMetas[m.mpos].inc != m.inc && !m.redelivered
}

func (s *shell[E, F]) step(ev E) {
	s.phase = inStep
	s.effects = s.core.Step(s.now, ev)
	if len(s.effects) > 0 {
		s.run()
	}
	s.phase = inNothing
}

func (s *shell[E, F]) run() {
	s.phase = inDo
	for i := range s.effects {
		s.effect = i
		if s.ran != nil && s.hasRun(s.effects[i]) {
			continue
		}
		s.spec.Do(s.self, s.effects[i])
	}
}

// hasRun tells whether the effect is one that ran before Do panicked; each counts once.
func (s *shell[E, F]) hasRun(f F) bool {
	i := slices.IndexFunc(s.ran, func(ran F) bool { return s.spec.Same(ran, f) })
	if i < 0 {
		return false
	}
	s.ran = slices.Delete(s.ran, i, i+1)
	return true
}

// fault applies an injected fault. done means that the message needs no step.
func (s *shell[E, F]) fault(ev E) (done bool) {
	f, ok := s.n.sys.Faults.hit(s.n.kind, s.n.name, typeName(ev))
	if !ok {
		return false
	}
	switch f.Action {
	case PanicMidStep:
		s.phase = inStep
		s.core.Step(s.now, ev)
		panic(InjectedPanic{f})
	case Delay:
		passed := make(chan struct{})
		stop := s.n.sys.clock.AfterFunc(f.Delay, func() { close(passed) })
		select {
		case <-passed:
		case <-s.n.abandoned:
			stop()
		}
		s.tick()
	case Drop:
		return true
	case Duplicate:
		s.step(ev)
	}
	return false
}

func (s *shell[E, F]) flush() {
	s.since = 0
	if s.spec.Flush != nil && s.dirty {
		s.phase = inFlush
		s.spec.Flush()
		s.phase = inNothing
	}
	s.dirty = false
}

// tick reads the clock.
func (s *shell[E, F]) tick() { s.now = s.n.sys.now() }

func typeName(v any) string { return fmt.Sprintf("%T", v) }
