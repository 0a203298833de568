package gather

import (
	"math"
	"slices"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Event is what a Core steps on.
type Event interface{ gatherEvent() }

// Begin puts the question.
type Begin struct {
	Nodes  []ids.Home
	Within time.Duration // how long a node may say nothing
	Most   int           // bytes of one answer
}

// Part is a part of a node's answer. One without bytes says that the node is at work. With the last one Err may say that there is no answer.
type Part struct {
	Node   ids.Home
	Number uint32
	Last   bool
	Body   []byte
	Err    *errs.Error
}

// Gone says that a node's life is over.
type Gone struct {
	Node ids.Home
	Err  *errs.Error
}

// Timer says that the time asked for by After has come.
type Timer struct{}

func (Begin) gatherEvent() {}
func (Part) gatherEvent()  {}
func (Gone) gatherEvent()  {}
func (Timer) gatherEvent() {}

// Effect is what a Core asks for.
type Effect interface{ gatherEffect() }

// Ask sends the question to a node.
type Ask struct{ Node ids.Home }

// After asks for a Timer.
type After struct{ Delay time.Duration }

// Done is the end, once: what the nodes have answered, each node in one of the lists, in order.
type Done struct {
	Answers []Answer
	Missing []Missing
}

func (Ask) gatherEffect()   {}
func (After) gatherEffect() {}
func (Done) gatherEffect()  {}

// Answer is what a node says: that it cannot answer, too.
type Answer struct {
	Node ids.Home
	Body []byte
	Err  *errs.Error
}

// Missing is a node that has not answered.
type Missing struct {
	Node ids.Home
	Err  *errs.Error
}

// Core is the logic.
type Core struct {
	within  time.Duration
	most    int
	waiting map[ids.Home]*arriving
	done    Done
	over    bool
}

// arriving is an answer of which parts have come.
type arriving struct {
	body  []byte
	next  uint32
	until int64 // when more of it must have come
}

// New makes the core of a question that nobody was asked yet.
func New() *Core { return &Core{waiting: make(map[ids.Home]*arriving)} }

// Step handles one event. What comes after Done, or from nobody who was asked, changes nothing.
func (c *Core) Step(now int64, ev Event) (fx []Effect) {
	if c.over {
		return nil
	}
	switch ev := ev.(type) {
	case Begin:
		c.within, c.most = ev.Within, ev.Most
		for _, node := range ev.Nodes {
			if c.waiting[node] == nil {
				c.waiting[node] = &arriving{until: now + int64(ev.Within)}
				fx = append(fx, Ask{Node: node})
			}
		}
		if len(fx) > 0 {
			fx = append(fx, After{Delay: c.within})
		}
	case Part:
		c.part(now, ev)
	case Gone:
		c.missing(ev.Node, ev.Err)
	case Timer:
		fx = c.expire(now)
	}
	if len(c.waiting) > 0 {
		return fx
	}
	c.over = true
	slices.SortFunc(c.done.Answers, func(a, b Answer) int { return int(a.Node) - int(b.Node) })
	slices.SortFunc(c.done.Missing, func(a, b Missing) int { return int(a.Node) - int(b.Node) })
	return append(fx, c.done)
}

// expire gives up the nodes that have said nothing for too long, and asks for a Timer for the others.
func (c *Core) expire(now int64) []Effect {
	next := int64(math.MaxInt64)
	for node, a := range c.waiting {
		if a.until <= now {
			c.missing(node, errs.New(errs.CodeDeadline, "no answer within %v", c.within))
		} else {
			next = min(next, a.until)
		}
	}
	if len(c.waiting) == 0 {
		return nil
	}
	return []Effect{After{Delay: time.Duration(next - now)}}
}

func (c *Core) part(now int64, p Part) {
	a := c.waiting[p.Node]
	switch {
	case a == nil:
	case p.Number != a.next:
		c.missing(p.Node, errs.New(errs.CodeProtocol, "part %d of its answer follows %d others", p.Number, a.next))
	case len(a.body)+len(p.Body) > c.most:
		c.missing(p.Node, errs.New(errs.CodeInvalid, "its answer has more than %d bytes; ask for fewer rows", c.most))
	default:
		a.body = append(a.body, p.Body...)
		a.next++
		a.until = now + int64(c.within)
		if p.Last {
			delete(c.waiting, p.Node)
			c.done.Answers = append(c.done.Answers, Answer{Node: p.Node, Body: a.body, Err: p.Err})
		}
	}
}

func (c *Core) missing(node ids.Home, why *errs.Error) {
	if c.waiting[node] != nil {
		delete(c.waiting, node)
		c.done.Missing = append(c.done.Missing, Missing{Node: node, Err: why})
	}
}
