package actors

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"

	"mobula/internal/errs"
	"mobula/internal/steady"
)

// Config is what a System is given. The zero value works.
type Config struct {
	Clock       Clock         // nil: that of package time
	Logger      *slog.Logger  // nil: silent
	Faults      *Faults       // nil: a set of its own
	OnEvent     func(Event)   // restarts, escalations, poisoned messages; may be nil
	StopTimeout time.Duration // of stops that nobody waits for; 0 is 10 s
}

// System is one tree of components over one protoactor actor system.
type System struct {
	Faults *Faults

	as          *actor.ActorSystem
	clock       Clock
	log         *slog.Logger
	onEvent     func(Event)
	stopTimeout time.Duration
	root        *node
	pool        pool
	background  sync.WaitGroup // stops that nobody waits for

	mu       sync.Mutex // guards the tree: the fields that node lists
	restarts map[string]uint64
}

// NewSystem makes an empty tree: a root under which Spawn and Supervisor put components.
// It keeps a few idle goroutines until StopTree. Making one takes about 3 ms, for protoactor's registry, and keeps
// 8 KiB.
func NewSystem(cfg Config) *System {
	s := &System{
		Faults: cfg.Faults, clock: cfg.Clock, log: cfg.Logger, onEvent: cfg.OnEvent,
		stopTimeout: cfg.StopTimeout, restarts: make(map[string]uint64),
	}
	if s.Faults == nil {
		s.Faults = &Faults{}
	}
	if s.clock == nil {
		s.clock = RealClock(steady.New())
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.stopTimeout <= 0 {
		s.stopTimeout = 10 * time.Second
	}
	s.as = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet(s.log) }))
	shrinkRegistry(s.as)
	replaceEventStream(s.as, s.log)
	s.root = newNode(nil, "root", "root", Policy{})
	s.root.sys, s.root.path, s.root.pid = s, "root", s.as.NewLocalPID("root")
	_, _ = s.as.Root.SpawnNamed(supervisorProps(s.root), s.root.path) // the registry is empty: the name is free
	close(s.root.spawned)
	return s
}

// shrinkRegistry leaves one of the registry's 1024 buckets of 32 shards each: a node
// has hundreds of components, not millions, and the buckets are 3 MiB of empty maps.
func shrinkRegistry(as *actor.ActorSystem) {
	reg := as.ProcessRegistry
	kept := map[string]actor.Process{}
	for _, id := range []string{"deadletter", "eventstream"} {
		if p, ok := reg.GetLocal(id); ok {
			kept[id] = p
		}
	}
	all := reg.LocalPIDs.LocalPIDs
	one := append(all[:0:0], all[0])
	reg.LocalPIDs = &actor.SliceMap{LocalPIDs: one}
	for id, p := range kept {
		reg.LocalPIDs.GetBucket(id).Set(id, p)
	}
}

// replaceEventStream drops protoactor's own subscribers: its throttle of dead-letter
// records leaves a goroutine asleep after a stop. Dead letters here are system messages that cross a stop, which
// only a debugger needs. (The other subscriber answers protoactor watches of dead actors; the kit has its own.)
func replaceEventStream(as *actor.ActorSystem, log *slog.Logger) {
	as.EventStream = eventstream.NewEventStream()
	as.EventStream.Subscribe(func(e any) {
		if d, ok := e.(*actor.DeadLetterEvent); ok && log.Enabled(context.Background(), slog.LevelDebug) {
			log.Debug("dead letter", "to", d.PID.GetId(), "message", typeName(d.Message))
		}
	})
}

func (s *System) treeNode() *node { return s.root }

func (s *System) now() int64 { return s.clock.Now() }

// Restarts counts restarts since the system began, by kind of component.
func (s *System) Restarts() map[string]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]uint64, len(s.restarts))
	maps.Copy(out, s.restarts)
	return out
}

// Spawn starts a component under parent: a *System, a Sup or the *Ref of another
// component. It returns when the first core is built; New's error is its error. It may be called from anywhere,
// including the parent's Do.
func Spawn[E, F any](parent Parent, spec Spec[E, F]) (*Ref[E], error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	p := parent.treeNode()
	n := newNode(p, spec.Kind, spec.Name, spec.Policy)
	m := newMailbox[E](n, spec.Mailbox, spec.Thread)
	n.box = m
	k := &kept[E, F]{spec: spec, m: m, n: n, faults: &p.sys.Faults.on, ready: make(chan error, 1)}
	props := actor.PropsFromProducer(k.incarnate,
		actor.WithMailbox(func() actor.Mailbox { return m }),
		actor.WithDispatcher(m.dispatcher),
		actor.WithSupervisor(strategy{n}))
	if err := n.spawn(props); err != nil {
		m.finish()
		return nil, err
	}
	select {
	case err := <-k.ready:
		if err != nil {
			<-n.done
			return nil, fmt.Errorf("component %s could not start: %w", n.path, err)
		}
	case <-n.abandoned:
		return nil, fmt.Errorf("component %s was stopped while it started: %w", n.path, ErrStopped)
	}
	return &Ref[E]{m: m}, nil
}

// Sup is a node of the tree that only has children.
type Sup struct{ n *node }

// Supervisor starts a supervisor under parent. p bounds its children's escalations.
func Supervisor(parent Parent, kind, name string, p Policy) (Sup, error) {
	if kind == "" || name == "" {
		return Sup{}, errs.New(errs.CodeInvalid, "supervisor kind %q, name %q: both must be set", kind, name)
	}
	if err := p.check(); err != nil {
		return Sup{}, fmt.Errorf("supervisor %s: %w", name, err)
	}
	n := newNode(parent.treeNode(), kind, name, p.withDefaults())
	if err := n.spawn(supervisorProps(n)); err != nil {
		return Sup{}, err
	}
	return Sup{n}, nil
}

func (s Sup) treeNode() *node { return s.n }

// Stop stops everything below the supervisor, last started first, then itself.
func (s Sup) Stop(ctx context.Context) error { return s.n.sys.stop(ctx, s.n) }

// supervisor is the protoactor actor of a Sup and of the root.
type supervisor struct{ n *node }

func supervisorProps(n *node) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return supervisor{n} }, actor.WithSupervisor(strategy{n}), actor.WithDispatcher(&n.sys.pool))
}

func (s supervisor) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Stopped); ok {
		s.n.finish(0)
	}
}
