package shell

import (
	"slices"
	"sync"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Call is one call that this process makes. Whoever makes it sets the exported fields, but of direct.Call not Payload, which is the Call itself, nor Group and Retries,
// which the actor says.
type Call struct {
	direct.Call
	Own     any    // of who makes it
	InGroup string // the concurrency group; empty: the first
	Tells   bool   // there are no references to its result
	Quiet   bool   // nobody waits for its end: it may be told of later, with those of others
	Spare   bool   // one that is quiet, and has no deadline: Up.Spare has it when it has gone straight, has ended well and nobody has it any more

	listed     bool // guarded by of.mu
	settled    bool // guarded by of.mu
	dropped    bool // guarded by of.mu: nobody holds the result
	went       bool // guarded by of.mu: it has gone by a link
	holds      bool // guarded by of.mu: the actor is held for it
	shown      bool // guarded by of.mu: somebody may have it for longer than the lock is held
	of         *Callee
	prev, next *Call           // guarded by of.mu: of those whose results somebody holds, or that are under way
	in         direct.Incoming // what the actor's side has of it when it goes by a link for the first time
	end        *direct.Outcome // what it came to
	also       *Call           // of those whose ends are to be told, the next one
}

// Callee drives what this process calls of one actor.
type Callee struct {
	p     *Process
	actor ids.ActorID

	mu     sync.Mutex
	core   *direct.Caller
	memory *direct.Memory
	calls  *Call   // guarded by mu: the first of the list
	links  []*link // guarded by mu: one; others that are over, and of which not all is acknowledged
	held   int64   // guarded by mu: of p.held
	after  after   // guarded by mu: what this step leaves to be done
	from   *link   // guarded by mu: whose answer is taken just now; nil: none
	first  *Call   // guarded by mu: of the calls whose ends this step leaves to be told
	last   *Call   // guarded by mu: of these
	used   bool    // guarded by mu: since the last sweep
	idle   int     // guarded by mu: sweeps since then
	gone   bool    // guarded by mu: it is forgotten

	waits []wait // guarded by mu: for calls to be sent

	under int  // guarded by mu: calls for which the actor is held
	pace  pace // guarded by mu
	holds any  // guarded by mu: what holds the actor, from a call on; nil: nothing
	alone bool // guarded by mu: nothing else does: it is let go of when no call is under way
	let   any  // guarded by mu: what this step lets go of
	Own   any  // guarded by mu: of who makes the calls, for Up and All

	known   bool     // guarded by mu: what the actor says of its calls
	retries int32    // guarded by mu
	groups  []string // guarded by mu
}

// Way is a channel to an actor's instance.
type Way struct {
	Instance direct.Instance
	Channel  direct.Channel
	Credit   int64    // bytes of calls that may be under way on it
	Retries  int32    // MaxTaskRetries
	Groups   []string // concurrency groups of the actor, by number
}

func newCallee(p *Process, actor ids.ActorID) *Callee {
	c := &Callee{p: p, actor: actor, memory: direct.NewMemory()}
	c.core = direct.NewCaller(c.memory, nil)
	return c
}

// Actor is which actor it is.
func (c *Callee) Actor() ids.ActorID { return c.actor }

// Begin makes a call; false: this Callee was forgotten, and Process has another.
func (c *Callee) Begin(k *Call) (begun, crowded bool) {
	c.mu.Lock()
	if c.gone {
		c.mu.Unlock()
		return false, false
	}
	k.of, k.Payload, k.dropped = c, k, k.Tells
	k.holds = true
	if c.under++; c.holds == nil {
		c.holds = c.p.up.Holds(c)
	}
	c.fits(k)
	c.list(k)
	crowded = c.crowded()
	c.step(direct.Begin{Call: &k.Call})
	c.leave()
	return true, crowded
}

// Callee is where a call was made; nil: it was not begun.
func (k *Call) Callee() *Callee { return k.of }

// HoldsAlone says that nothing else in the process holds the actor that Up.Holds has held.
func (c *Callee) HoldsAlone() {
	c.mu.Lock()
	c.alone = c.holds != nil
	c.maybeLetGo()
	c.leave()
}

func (c *Callee) maybeLetGo() {
	if c.alone && c.under == 0 {
		c.let, c.holds, c.alone = c.holds, nil, false
	}
}

// tell takes an event that is not of a call.
func (c *Callee) tell(e direct.Event) {
	c.mu.Lock()
	c.step(e)
	c.leave()
}

// leave unlocks, and does what is left to be done.
func (c *Callee) leave() {
	later := c.after
	c.after = after{}
	k := c.first
	c.first, c.last = nil, nil
	let := c.let
	c.let = nil
	ready := c.sent()
	c.mu.Unlock()
	for k != nil {
		also, end := k.also, k.end
		k.also = nil
		c.p.up.Settled(k, end) // from here on it is the program's
		k = also
	}
	if let != nil {
		c.p.up.LetsGo(let)
	}
	later.do()
	for _, f := range ready {
		f()
	}
}

// tell takes an event of the call.
func (k *Call) tell(e direct.Event) {
	c := k.of
	c.mu.Lock()
	k.shown = true
	c.step(e)
	c.leave()
}

// Open answers AskWay with a channel to a mailbox of this process; nil: its instance has ended meanwhile.
func (c *Callee) Open(m *Mailbox, w Way) {
	groups := len(w.Groups)
	if m != nil {
		groups = len(m.cfg.Groups)
	}
	c.open(&link{id: w.Channel, from: c, to: m, broken: m == nil, begun: make([]uint64, groups)}, w)
}

func (c *Callee) open(l *link, w Way) {
	c.mu.Lock()
	c.known, c.retries, c.groups = true, w.Retries, w.Groups
	for k := c.calls; k != nil; k = k.next {
		c.fits(k)
	}
	c.links = append(c.links, l)
	if l.to != nil {
		c.after.join(l.to.link(l)) // before calls come on it
	}
	c.step(direct.Opened{Instance: w.Instance, Channel: w.Channel, Credit: w.Credit})
	if l.broken {
		c.step(direct.Broke{Channel: w.Channel})
	}
	c.leave()
}

// fits sets what the actor says of a call, once that is known. A group that it does not have has a number beyond all.
func (c *Callee) fits(k *Call) {
	if !c.known || k.settled {
		return
	}
	if k.Retries = c.retries; k.InGroup == "" {
		return
	}
	if k.Group = slices.Index(c.groups, k.InGroup); k.Group < 0 {
		k.Group = len(c.groups)
	}
}

// ByOwner answers AskWay: there is no channel.
func (c *Callee) ByOwner() { c.tell(direct.GoesByOwner{}) }

// NoWay answers AskWay: the actor restarts, and calls do not wait for that, or it is dead.
func (c *Callee) NoWay(dead bool, why *errs.Error) { c.tell(direct.NoWay{Dead: dead, Err: why}) }

// Over is the node's word on a channel. What has begun on a link of this process is known here.
func (c *Callee) Over(e direct.Over) {
	c.mu.Lock()
	if l := c.link(e.Channel); l != nil && e.Begun == nil {
		e.Begun = l.counts() // none has, where there was no mailbox
	}
	c.step(e)
	c.leave()
}

// Cut ends a channel as if it had broken. The actor hears that it is over.
func (c *Callee) Cut(ch direct.Channel) {
	c.mu.Lock()
	defer c.leave()
	if l := c.link(ch); l != nil && !l.broken && l.far == nil {
		c.drain(l)
	}
	l := c.link(ch)
	if l == nil || l.broken { // what was on its way has ended it
		return
	}
	l.broken = true
	c.step(direct.Broke{Channel: ch})
	c.after.join(l.hangUp())
}

// Held says that the owner knows of the references in an answer.
func (c *Callee) Held(ch direct.Channel, ackNo uint64) {
	c.tell(direct.Held{Channel: ch, AckNo: ackNo})
}

// Argument says that the arguments of a call are there, or have failed, and how many bytes it takes.
func (k *Call) Argument(bytes int64, err *errs.Error) {
	k.tell(direct.Argument{Call: &k.Call, Err: err, Bytes: bytes})
}

// Cancel says that the call should end.
func (k *Call) Cancel(w direct.Wish) { k.tell(direct.Cancel{Call: &k.Call, Wish: w}) }

// EndUnbegun ends the call with an error, unless it has begun.
func (k *Call) EndUnbegun(why *errs.Error) { k.tell(direct.Cancel{Call: &k.Call, Why: why}) }

// Expired says that its deadline has passed.
func (k *Call) Expired() { k.tell(direct.Expired{Call: &k.Call}) }

// OwnerAnswered is the end of a call that was submitted.
func (k *Call) OwnerAnswered(o *direct.Outcome) {
	k.tell(direct.OwnerAnswered{Call: &k.Call, Outcome: o})
}

// Leaves says that a reference to the result is about to leave the process: Departs says when it may.
func (k *Call) Leaves() { k.tell(direct.Leaves{Call: &k.Call}) }

// Adopted is the owner's answer to Adopt.
func (k *Call) Adopted() { k.tell(direct.Adopted{Call: &k.Call}) }

// Released says that nobody in the process holds the result.
func (k *Call) Released() {
	c := k.of
	c.mu.Lock()
	k.dropped = true
	c.step(direct.Released{Call: &k.Call})
	c.unlist(k)
	c.leave()
}

// list has a new core told of a call.
func (c *Callee) list(k *Call) {
	k.listed, k.prev, k.next = true, nil, c.calls
	if c.calls != nil {
		c.calls.prev = k
	}
	c.calls = k
}

// unlist drops a call that is over, and whose result nobody holds.
func (c *Callee) unlist(k *Call) {
	if !k.listed || !k.settled || !k.dropped {
		return
	}
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		c.calls = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	}
	k.listed, k.prev, k.next = false, nil, nil
}

func (c *Callee) link(ch direct.Channel) *link {
	for _, l := range c.links {
		if l.id == ch {
			return l
		}
	}
	return nil
}

// close ends all channels. Nothing is told any more.
func (c *Callee) close() {
	c.mu.Lock()
	defer c.leave()
	for _, l := range c.links {
		if !l.broken {
			l.broken = true
			c.after.join(l.hangUp())
		}
	}
	c.gone = true
}

func (c *Callee) sweep(sweeps int) {
	c.mu.Lock()
	defer c.leave()
	for _, l := range c.links {
		if !l.broken {
			c.after.join(l.acknowledge())
		}
	}
	if c.used {
		c.used, c.idle = false, 0
		return
	}
	if c.idle++; c.idle < sweeps {
		return
	}
	for _, l := range slices.Clone(c.links) { // one that is closed leaves
		c.step(direct.Idle{Channel: l.id})
	}
	if c.calls == nil && c.core.Idle() && !c.gone {
		c.gone, c.alone = true, c.holds != nil
		c.maybeLetGo()
		c.p.forget(c)
	}
}
