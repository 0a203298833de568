package shell

import (
	"sync"
	"sync/atomic"

	"mobula/internal/direct"
	"mobula/internal/ids"
)

// Up is what a process that calls tells its program, its node and the owner of its job. All but Settled and LetsGo is called under the Callee's lock: it hands over, and calls
// nothing of this package.
type Up interface {
	AskWay(c *Callee)                                                      // of the node: how calls get to the actor; Open, ByOwner or NoWay follows
	AskWord(c *Callee, ch direct.Channel)                                  // of the node: what has become of a channel; Over follows
	Submit(k *Call)                                                        // to the owner, as a task; OwnerAnswered follows
	Revoke(k *Call, w direct.Wish)                                         // ask the owner to cancel it
	Adopt(k *Call, where direct.Effect)                                    // tell the owner of it; Adopted follows
	Report(k *Call, o *direct.Outcome)                                     // tell the owner, which has adopted it, what it came to
	HangUp(ch direct.Channel)                                              // the channel is needed no more
	Linked(c *Callee, ch direct.Channel, to direct.Instance)               // tell the owner, which was made anew, of a channel
	Settles(k *Call, o *direct.Outcome)                                    // hold what the answer has references to: the actor's side lets go of that from then on; Settled follows
	Settled(k *Call, o *direct.Outcome)                                    // tell who waits for it; of one that is for Spare, under the lock
	Spare(k *Call)                                                         // it was Spare, and nobody has it any more: it may be used for another call, as a zero value
	AskHeld(c *Callee, ch direct.Channel, ackNo uint64, o *direct.Outcome) // ask owners to say when they know of the references in what another process has answered; Held follows
	Departs(k *Call)                                                       // a reference to its result may leave
	Holds(c *Callee) any                                                   // hold the actor, and say HoldsAlone when nothing else here does; nil: there is nothing to hold
	LetsGo(held any)                                                       // of that: nothing else holds it, and no call is under way, or there was none for long; the lock is not held
	Panicked(event string, reason any, n int)                              // a core has panicked, for the n-th time, on an event of that type
}

// Process is what one process calls of all actors.
type Process struct {
	up     Up
	budget int64
	held   atomic.Int64 // bytes of results that only this process has

	mu      sync.RWMutex
	callees map[ids.ActorID]*Callee // guarded by mu
}

// NewProcess makes that of a process which keeps at most so many bytes of results to itself: what is more the owner is given.
func NewProcess(budget int64, up Up) *Process {
	return &Process{up: up, budget: budget, callees: make(map[ids.ActorID]*Callee)}
}

// Begin makes a call of an actor. If it has many before it, its Callee is given: who makes one after another should Pause.
func (p *Process) Begin(actor ids.ActorID, k *Call) (crowded *Callee) {
	for {
		c := p.Callee(actor)
		switch begun, many := c.Begin(k); {
		case !begun: // it was just forgotten
		case many:
			return c
		default:
			return nil
		}
	}
}

// Callee is what this process calls of an actor. It may be forgotten when nothing is under way, and then there is another.
func (p *Process) Callee(actor ids.ActorID) *Callee {
	p.mu.RLock()
	c := p.callees[actor]
	p.mu.RUnlock()
	if c != nil {
		return c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c = p.callees[actor]; c == nil {
		c = newCallee(p, actor)
		if p.callees != nil { // else it is closed: the call comes to nothing
			p.callees[actor] = c
		}
	}
	return c
}

// HoldsAlone tells the Callee of an actor, if there is one.
func (p *Process) HoldsAlone(actor ids.ActorID) {
	p.mu.RLock()
	c := p.callees[actor]
	p.mu.RUnlock()
	if c != nil {
		c.HoldsAlone()
	}
}

// Sweep lets go of what was not used since the sweep before: acknowledgements are passed on, channels are closed that were idle for so many sweeps, and actors are
// forgotten of which nothing is left. It gives how many are not.
func (p *Process) Sweep(sweeps int) int {
	for _, c := range p.all() {
		c.sweep(sweeps)
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.callees)
}

func (p *Process) all() []*Callee {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]*Callee, 0, len(p.callees))
	for _, c := range p.callees {
		all = append(all, c)
	}
	return all
}

// All visits the Callees, each under its lock.
func (p *Process) All(visit func(*Callee)) {
	for _, c := range p.all() {
		c.visit(visit)
	}
}

func (c *Callee) visit(f func(*Callee)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

// OwnerLost says that the owner was made anew: it is told and asked again what the one before was.
func (p *Process) OwnerLost() {
	for _, c := range p.all() {
		c.tell(direct.OwnerLost{})
	}
}

// Close ends all channels, since the process makes no calls any more. What is under way runs to its end, and nobody here hears of it.
func (p *Process) Close() {
	p.mu.Lock()
	all := p.callees
	p.callees = nil
	p.mu.Unlock()
	for _, c := range all {
		c.close()
	}
}

// forget drops a Callee, whose lock is held.
func (p *Process) forget(c *Callee) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.callees[c.actor] == c {
		delete(p.callees, c.actor)
	}
}
