package direct

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
)

// Caller is the core of a process that calls actors.
type Caller struct {
	memory   *Memory
	order    uint64 // of the last call
	budget   int64  // bytes of results that only this process may have
	held     int64
	results  queue.Queue[*Call] // the oldest first; of some only the owner has them by now, or nobody
	kept     int                // of these, how many this process has
	actors   map[ids.ActorID]*callee
	channels map[Channel]*channel
	effects  []Effect

	touchedCalls    []*Call // in the step under way
	touchedActors   []*callee
	touchedChannels []*channel
}

// callee is an actor that this process calls.
type callee struct {
	id        ids.ActorID
	way       way
	lines     map[ids.TaskID]*line
	list      []*line            // the same, in a fixed order
	last      *line              // that was asked for; nil: none
	starved   queue.Queue[*line] // that wait for credit
	submitted int                // calls that are with the owner
	dead      *errs.Error
	ch        *channel // nil: there is none
	touched   bool
}

// way is how calls get to an actor.
type way uint8

const (
	unknown  way = iota
	asked        // the node was asked
	straight     // there is a channel
	doubtful     // the instance or the channel has ended: the node's word is awaited
	byOwner
	dead
)

// channel is one channel of this process.
type channel struct {
	id     Channel
	of     *callee
	credit int64              // bytes that may be sent
	flight queue.Queue[*Call] // what was sent, from number first on; nil: it has ended
	first  uint64
	facts
	kept    *facts // after the last step that has ended; nil: it is new
	touched bool
}

// facts is what does not follow from the calls.
type facts struct {
	actor    ids.ActorID
	instance Instance
	limit    int64           // of the credit
	sent     uint64          // up to this number
	groups   []uint64        // sent of each
	acked    uint64          // answers acknowledged, up to this number
	holds    map[uint64]bool // answers of whose references the owner does not know yet
	answers  uint64          // that came
	said     uint64          // answers before the first in place of a result
	broke    bool            // it was read to its end
	gone     bool            // nobody reads acknowledgements
	word     *Over           // that came before it broke
	over     bool            // all that was under way is dealt with
}

// line is the calls of one caller of an actor that were not sent, in order.
type line struct {
	of    *callee
	id    ids.TaskID
	at    int // in the list
	calls queue.Queue[*Call]
	waits bool // for credit
	owner bool // those sent last went by the owner
	out   int  // under way, the last way
}

// Step takes an event. The effects are valid until the next step. If it panics, a new core is made of the memory and the calls, as if it had not begun.
func (c *Caller) Step(_ int64, ev Event) []Effect {
	c.step(ev)
	c.commit()
	return c.effects
}

func (c *Caller) step(ev Event) {
	clear(c.effects)
	c.effects = c.effects[:0]
	switch e := ev.(type) {
	case Begin:
		c.begin(e.Call)
	case Argument:
		c.argument(e.Call, e.Err)
	case Cancel:
		c.cancel(e.Call, &errs.Error{Code: errs.CodeCancelled, Task: e.Call.ID.String()})
	case Expired:
		c.expired(e.Call)
	case Opened:
		c.opened(e)
	case GoesByOwner:
		if a := c.actors[e.Actor]; a != nil && a.way == asked {
			c.touchActor(a).way = byOwner
			c.pumpAll(a)
		}
	case NoWay:
		c.noWay(e)
	case Over:
		c.word(&e)
	case Held:
		if ch := c.channels[e.Channel]; ch != nil {
			delete(c.touchChannel(ch).holds, e.AckNo)
			c.acknowledge(ch)
		}
	case *Answered:
		c.answered(e)
	case Broke:
		if ch := c.channels[e.Channel]; ch != nil {
			c.broke(ch, e.Last)
		}
	case Idle:
		if ch := c.channels[e.Channel]; ch != nil {
			c.idle(ch)
		}
	case OwnerAnswered:
		c.ownerAnswered(e.Call, e.Outcome)
	case Leaves:
		c.leaves(e.Call)
	case Released:
		c.touch(e.Call).dropped = true
		c.letGo(e.Call)
	case Adopted:
		c.ownerKnows(e.Call)
	}
}

func (c *Caller) do(e Effect) { c.effects = append(c.effects, e) }

func (c *Caller) begin(k *Call) {
	a := c.actors[k.Actor]
	if a == nil {
		a = c.newActor(k.Actor)
	}
	c.order++
	k.touched = false
	c.touch(k).standing = standing{order: c.order, missing: k.Missing}
	if a.way == dead && !k.ByOwner {
		c.settle(k, &Outcome{Err: a.dead})
		return
	}
	l := a.line(k.Caller)
	k.line = l
	l.calls.Push(k)
	c.pump(l)
}

func (c *Caller) argument(k *Call, err *errs.Error) {
	if k.stage != inLine {
		return
	}
	if err != nil {
		c.drop(k, &Outcome{Err: err})
		return
	}
	c.touch(k).missing--
	c.pump(k.line)
}

// drop ends a call that was not sent. It has no number yet, so none is missed.
func (c *Caller) drop(k *Call, o *Outcome) {
	l := k.line
	l.calls.DeleteFunc(func(x *Call) bool { return x == k })
	c.settle(k, o)
	c.pump(l)
}

func (c *Caller) cancel(k *Call, err *errs.Error) {
	switch k.stage {
	case inLine:
		c.drop(k, &Outcome{Err: err})
	case onChannel:
		c.touch(k).final = err
		if a := k.line.of; a.way == straight {
			c.do(Effect{Do: Withdraw, Call: k, Channel: a.ch.id, No: k.no})
		}
	case withOwner:
		c.do(Effect{Do: Revoke, Call: k})
	case ended:
	}
}

// expired ends a call of whose host nothing is heard. One that lives ends the call itself.
func (c *Caller) expired(k *Call) {
	err := &errs.Error{Code: errs.CodeDeadline, Task: k.ID.String(), Msg: "the call's deadline has passed"}
	if k.stage == onChannel && k.line.of.way != straight {
		l := k.line
		c.leave(l.of.ch, k)
		c.settle(k, &Outcome{Err: err})
		c.pump(l)
		return
	}
	c.cancel(k, err)
}

// settle ends a call. What the owner has adopted it is told before the host is told that the answer was taken.
func (c *Caller) settle(k *Call, o *Outcome) {
	c.touch(k).stage, k.outcome, k.line = ended, o, nil
	c.do(Effect{Do: Settle, Call: k, Outcome: o})
	switch {
	case k.submitted:
	case k.adopted:
		c.do(Effect{Do: Report, Call: k, Outcome: o})
	case !k.dropped:
		c.keep(k)
	}
}

// keep counts a result that only this process has. When they are too many the oldest are given to the owner.
func (c *Caller) keep(k *Call) {
	if k.outcome.Bytes == 0 {
		return
	}
	k.held = k.outcome.Bytes
	c.held += k.held
	c.kept++
	c.results.Push(k)
	for c.held > c.budget {
		if old := c.results.Pop(); old.held > 0 {
			c.letGo(old)
			c.touch(old).adopted = true
			c.adopt(old)
		}
	}
	if c.results.Len() > 2*c.kept+manyLines {
		c.results.DeleteFunc(func(k *Call) bool { return k.held == 0 })
	}
}

// letGo takes a result off those that only this process has.
func (c *Caller) letGo(k *Call) {
	if k.held > 0 {
		c.held -= k.held
		c.touch(k).held = 0
		c.kept--
	}
}

func (c *Caller) ownerAnswered(k *Call, o *Outcome) {
	if k.stage != withOwner {
		return
	}
	l := k.line
	l.out--
	l.of.submitted--
	c.settle(k, o)
	if a := l.of; a.way == byOwner && a.submitted == 0 {
		c.touchActor(a).way = unknown // the next call asks again
	}
	c.pump(l)
	c.maybeForget(l.of)
}

// leaves has the owner adopt a result before a reference to it leaves.
func (c *Caller) leaves(k *Call) {
	switch {
	case k.known:
		c.do(Effect{Do: Depart, Call: k})
	case k.adopted:
		c.touch(k).leaving++
	default:
		c.touch(k).adopted = true
		k.leaving++
		c.letGo(k)
		c.adopt(k)
	}
}

// adopt tells the owner of a call, and where it is: the host there is asked for it if this process ends.
func (c *Caller) adopt(k *Call) {
	e := Effect{Do: Adopt, Call: k}
	switch k.stage {
	case onChannel:
		ch := k.line.of.ch
		e.Channel, e.Instance, e.No = ch.id, ch.instance, k.no
	case ended:
		e.Outcome = k.outcome
	case inLine, withOwner:
	}
	c.do(e)
}

func (c *Caller) ownerKnows(k *Call) {
	c.touch(k).known = true
	for ; k.leaving > 0; k.leaving-- {
		c.do(Effect{Do: Depart, Call: k})
	}
}
