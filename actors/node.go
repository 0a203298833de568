package actors

import (
	"fmt"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"mobula/internal/errs"
)

// Parent is a place in the tree: *System (its root), Sup, or the *Ref of a component.
type Parent interface{ treeNode() *node }

// box is what the tree needs of a mailbox, whatever its type of event.
type box interface {
	depth() (waiting, bound int)
	handledCount() uint64
}

// node is a component's place in the tree. It outlives the cores.
type node struct {
	sys              *System
	kind, name, path string
	parent           *node
	policy           Policy
	pid              *actor.PID    // resolves once spawned is closed
	box              box           // nil for a supervisor
	spawned          chan struct{} // closed when the protoactor process exists
	done             chan struct{} // closed when it has stopped
	abandoned        chan struct{} // closed when a stop's deadline passed: do not drain
	abandonOnce      sync.Once

	// Guarded by sys.mu.
	children   []*node // in order of start
	closing    bool    // no more children
	stopTold   bool    // told to stop
	gone       bool
	panics     failures // of its own cores
	escalated  failures // of its children
	restart    *pending // waits for the backoff
	reason     error    // of the last panic or restart
	failed     error    // set when escalation reached the root through it
	nrestarts  int
	npoisoned  int
	nescalated int
	watchers   []*watch
}

// Info is a component as Tree lists it.
type Info struct {
	Path, Parent string // names from the root, joined by "/"
	Kind, Name   string
	Restarts     int
	Escalations  int
	Poisoned     int    // messages
	Depth        int    // messages that wait, including the present one
	Bound        int    // of the mailbox, messages; 0 for a supervisor
	Handled      uint64 // messages stepped, to within a batch
	Waiting      bool   // for the backoff before a restart
	Err          error  // of the last panic, nil if there was none
}

func newNode(parent *node, kind, name string, p Policy) *node {
	n := &node{
		parent: parent, kind: kind, name: name, policy: p,
		spawned: make(chan struct{}), done: make(chan struct{}), abandoned: make(chan struct{}),
	}
	if parent != nil {
		n.sys, n.path = parent.sys, parent.path+"/"+name
		n.pid = n.sys.as.NewLocalPID(n.path)
	}
	return n
}

// childOf lets any goroutine spawn with a parent's PID. protoactor's own list of children stays empty: a restart
// in protoactor stops children, while here a parent's restart only replaces its core. The tree keeps the children
// and their order, and stops them.
type childOf struct {
	actor.SpawnerContext
	pid *actor.PID
}

func (c childOf) Self() *actor.PID { return c.pid }

// spawn enters the node in the tree and starts its protoactor process.
func (n *node) spawn(props *actor.Props) error {
	s := n.sys
	s.mu.Lock()
	if n.parent.closing || n.parent.gone {
		s.mu.Unlock()
		return fmt.Errorf("component %s not started: parent %s: %w", n.name, n.parent.path, ErrStopped)
	}
	if slices.ContainsFunc(n.parent.children, func(c *node) bool { return c.name == n.name }) {
		s.mu.Unlock()
		return errs.New(errs.CodeInvalid, "component %s not started: %s has a child of that name; stop it first or choose another", n.name, n.parent.path)
	}
	n.parent.children = append(n.parent.children, n)
	s.mu.Unlock()
	_, err := actor.DefaultSpawner(s.as, n.path, props, childOf{pid: n.parent.pid})
	if err != nil { // two nodes with the same path: "b/c" below "a", "c" below "a/b"
		n.leave()
		close(n.spawned)
		close(n.done)
		return errs.New(errs.CodeInvalid, "component %s not started: the path %s is taken: %v", n.name, n.path, err)
	}
	close(n.spawned)
	return nil
}

// leave removes the node from the tree.
func (n *node) leave() (ws []*watch, restart *pending) {
	n.sys.mu.Lock()
	defer n.sys.mu.Unlock()
	n.gone = true
	if p := n.parent; p != nil {
		if i := slices.Index(p.children, n); i >= 0 {
			p.children = slices.Delete(p.children, i, i+1)
		}
	}
	ws, n.watchers = n.watchers, nil
	restart, n.restart = n.restart, nil
	return ws, restart
}

// finish ends a component: it tells the watchers, then those that wait for the end.
func (n *node) finish(dropped int) {
	ws, restart := n.leave()
	if restart != nil {
		restart.cancel()
	}
	n.sys.mu.Lock()
	down := Down{Kind: n.kind, Name: n.name, Path: n.path, Restarts: n.nrestarts, Err: n.failed}
	n.sys.mu.Unlock()
	for _, w := range ws {
		w.tell(down)
	}
	n.sys.emit(n, Event{Kind: EventStopped, Dropped: dropped, Restarts: down.Restarts, Err: down.Err})
	close(n.done)
}

func (n *node) abandon() { n.abandonOnce.Do(func() { close(n.abandoned) }) }

// Tree lists the live components, each parent before its children, in order of start.
func (s *System) Tree() []Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Info
	var walk func(n *node)
	walk = func(n *node) {
		if n != s.root {
			out = append(out, n.info())
		}
		for _, c := range n.children {
			walk(c)
		}
	}
	walk(s.root)
	return out
}

func (n *node) info() Info {
	i := Info{
		Path: n.path, Parent: n.parent.path, Kind: n.kind, Name: n.name, Restarts: n.nrestarts,
		Escalations: n.nescalated, Poisoned: n.npoisoned, Waiting: n.restart != nil, Err: n.reason,
	}
	if n.box != nil {
		i.Depth, i.Bound = n.box.depth()
		i.Handled = n.box.handledCount()
	}
	return i
}

// subtree is the node and everything below it, parents first, in order of start.
func (n *node) subtree(out []*node) []*node {
	out = append(out, n)
	for _, c := range n.children {
		out = c.subtree(out)
	}
	return out
}
