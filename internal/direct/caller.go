package direct

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
)

// Caller is the core of what one process calls of one actor.
type Caller struct {
	memory   *Memory
	order    uint64 // of the last call
	way      way
	dead     *errs.Error
	lines    map[ids.TaskID]*line
	list     []*line            // the same, in a fixed order
	starved  queue.Queue[*line] // that wait for credit
	owned    int                // calls that are with the owner
	ch       *channel           // by which calls go; nil: there is none
	channels []*channel         // that one, and those that are over and of which not all is acknowledged
	results  results
	effects  []Effect

	touchedCalls    []*Call // in the step under way
	touchedChannels []*channel
}

// way is how calls get to the actor.
type way uint8

const (
	unknown  way = iota
	asked        // the node was asked
	straight     // there is a channel
	doubtful     // the instance or the channel has ended: the node's word is awaited
	byOwner
	dead
)

// channel is one channel to the actor.
type channel struct {
	credit int64              // bytes that may be sent
	flight queue.Queue[*Call] // what was sent, from number first on; nil: it has ended
	first  uint64
	facts
	kept    *facts // after the last step that has ended; nil: it is new
	touched bool
}

// facts is what does not follow from the calls.
type facts struct {
	id       Channel
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

// Step takes an event. The effects are valid until the next step. If it panics, a new core is made of the memory and the calls, as if it had not begun.
func (c *Caller) Step(_ int64, ev Event) []Effect {
	c.step(ev)
	c.commit()
	return c.effects
}

func (c *Caller) step(ev Event) {
	c.effects = c.effects[:0]
	switch e := ev.(type) {
	case Begin:
		c.begin(e.Call)
	case Argument:
		c.argument(e)
	case Cancel:
		c.cancel(e)
	case Expired:
		c.expired(e.Call)
	case Opened:
		c.opened(e)
	case GoesByOwner:
		if c.way == asked {
			c.way = byOwner
			c.pumpAll()
		}
	case NoWay:
		c.noWay(e)
	case Over:
		c.word(&e)
	case Held:
		if ch := c.channel(e.Channel); ch != nil {
			delete(c.touchChannel(ch).holds, e.AckNo)
			c.acknowledge(ch)
		}
	case *Answered:
		c.answered(e)
	case Broke:
		if ch := c.channel(e.Channel); ch != nil {
			c.broke(ch, e.Last)
		}
	case Idle:
		if ch := c.channel(e.Channel); ch != nil {
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
	case OwnerLost:
		c.ownerLost()
	case Relieve:
		c.relieve(e.Bytes)
	}
}

func (c *Caller) do(e Effect) { c.effects = append(c.effects, e) }

// channel finds a channel; nil: it is hung up.
func (c *Caller) channel(id Channel) *channel {
	if c.ch != nil && c.ch.id == id {
		return c.ch
	}
	for _, ch := range c.channels {
		if ch.id == id {
			return ch
		}
	}
	return nil
}

// Idle tells whether nothing is under way and no channel is open: then whoever drives the core may drop it with its memory, and take a new one for what comes
// later of calls that have ended.
func (c *Caller) Idle() bool {
	return len(c.lines) == 0 && len(c.channels) == 0 && c.owned == 0 && c.results.bytes == 0 && (c.way == unknown || c.way == dead)
}

func (c *Caller) begin(k *Call) {
	c.order++
	k.touched = false
	c.touch(k).standing = standing{order: c.order, missing: int32(k.Missing), adopted: k.Shared}
	switch {
	case c.way == dead && !k.ByOwner:
		c.settle(k, &Outcome{Err: c.dead})
	case c.way == straight && k.missing == 0 && !k.ByOwner && c.nothingBefore(k) && c.ch.takes(k):
		c.send(k)
	default:
		if k.adopted {
			c.adopt(k)
		}
		l := c.line(k.Caller)
		l.calls.Push(k)
		c.pump(l)
	}
}

// nothingBefore tells whether nothing waits that goes before a call.
func (c *Caller) nothingBefore(k *Call) bool {
	return len(c.lines) == 0 || c.starved.Len() == 0 && c.lines[k.Caller] == nil
}

func (c *Caller) argument(e Argument) {
	k := e.Call
	if k.stage != inLine {
		return
	}
	if e.Err != nil {
		c.drop(k, &Outcome{Err: e.Err})
		return
	}
	if e.Bytes > 0 {
		k.Bytes = e.Bytes
	}
	c.touch(k).missing--
	c.pump(c.lines[k.Caller])
}

// drop ends a call that was not sent. It has no number yet, so none is missed.
func (c *Caller) drop(k *Call, o *Outcome) {
	l := c.lines[k.Caller]
	l.calls.DeleteFunc(func(x *Call) bool { return x == k })
	c.settle(k, o)
	c.pump(l)
}

func (c *Caller) cancel(e Cancel) {
	k, err := e.Call, e.Why
	if err == nil {
		err = cancelled(k.ID)
	}
	switch k.stage {
	case inLine:
		c.drop(k, &Outcome{Err: err})
	case onChannel:
		if e.Why != nil { // it may have begun, and then goes on
			c.withdraw(k, Wish{}, &Outcome{Err: err})
			return
		}
		c.touch(k).final = err
		c.withdraw(k, e.Wish, nil)
	case withOwner:
		if e.Why == nil { // else it is the owner's to say
			c.do(Effect{Do: Revoke, Call: k, Wish: e.Wish})
		}
	case late, ended:
	}
}

// withdraw tells the host that a call should end, while it may be there.
func (c *Caller) withdraw(k *Call, w Wish, unbegun *Outcome) {
	if c.way == straight {
		c.do(Effect{Do: Withdraw, Call: k, Channel: c.ch.id, No: k.no, Wish: w, Outcome: unbegun})
	}
}

// cancelled is the error of a call that was cancelled.
func cancelled(call ids.TaskID) *errs.Error {
	return &errs.Error{Code: errs.CodeCancelled, Task: call.String()}
}

// expired ends a call. What its host answers is for nobody. The owner ends those that it makes itself.
func (c *Caller) expired(k *Call) {
	err := &errs.Error{Code: errs.CodeDeadline, Task: k.ID.String(), Msg: "the call's deadline has passed"}
	switch k.stage {
	case inLine:
		c.drop(k, &Outcome{Err: err})
	case onChannel:
		c.withdraw(k, Wish{}, nil)
		c.settle(k, &Outcome{Err: err})
		k.stage = late
	case late, withOwner, ended:
	}
}

func (c *Caller) ownerAnswered(k *Call, o *Outcome) {
	if k.stage != withOwner {
		return
	}
	c.owned--
	c.lines[k.Caller].owned--
	c.settle(k, o)
	if c.way == byOwner && c.owned == 0 {
		c.way = unknown // the next call asks again
	}
	c.goOn(k.Caller)
}
