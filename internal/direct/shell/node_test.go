package shell

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"mobula/internal/direct"
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// node is a process that calls and in which the actor lives, with a model of its node: it makes an instance again when one has fallen.
type node struct {
	cfg      direct.HostConfig
	run      func(in *direct.Incoming) direct.Finished
	retries  int32
	p        *Process
	channels atomic.Uint64
	panics   atomic.Int64
	adopted  atomic.Int64
	running  atomic.Int64 // goroutines of mailboxes
	spare    func(*Call)  // nil: nothing is done
	open     atomic.Int64 // channels

	mu        sync.Mutex
	box       *Mailbox          // guarded by mu: the instance that there is
	instances uint64            // guarded by mu
	dead      bool              // guarded by mu: no other follows
	lost      bool              // the next channel leads to an instance that is not found
	byOwner   bool              // guarded by mu: there are no channels
	of        sync.Map          // the mailbox of each channel
	boxes     map[*Mailbox]bool // guarded by mu: whether its instance has ended
}

var theActor = ids.ActorID(ids.Derive(ids.RootTask(1, 1), 1))

// with has f use a node with an actor that runs one call at once, in a bubble.
func with(t *testing.T, run func(in *direct.Incoming) direct.Finished, f func(t *testing.T, n *node)) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(direct.HostConfig{Groups: []int{1}, Unread: 4096}, run)
		f(t, n)
		n.rest()
		for m := range n.boxes {
			m.Sweep(0)
		}
	})
}

// rest waits until nothing goes on any more.
func (n *node) rest() { synctest.Wait() }

func newNode(cfg direct.HostConfig, run func(in *direct.Incoming) direct.Finished) *node {
	n := &node{cfg: cfg, run: run, boxes: make(map[*Mailbox]bool)}
	n.p = NewProcess(1<<20, n)
	n.make()
	return n
}

// later does what an answer of the node is: after the step that has asked.
func (n *node) later(f func()) { go f() }

func (n *node) make() {
	n.instances++
	n.box = NewMailbox(Config{HostConfig: n.cfg, Instance: direct.Instance(n.instances), Run: func(in *direct.Incoming, f *direct.Finished) { *f = n.run(in) }, Up: n, Spawn: func(f func()) bool {
		n.running.Add(1)
		go func() {
			defer n.running.Add(-1)
			f()
		}()
		return true
	}})
	n.boxes[n.box] = false
}

// state is what the node knows just now.
func (n *node) state() (box *Mailbox, dead, byOwner bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.box, n.dead, n.byOwner
}

func (n *node) AskWay(c *Callee) {
	n.later(func() {
		switch box, dead, byOwner := n.state(); {
		case dead:
			c.NoWay(true, errs.New(errs.CodeActorDied, "it is dead"))
		case byOwner:
			c.ByOwner()
		default:
			n.open.Add(1)
			ch := direct.Channel(n.channels.Add(1))
			if n.lost {
				n.lost, box = false, nil
			}
			n.of.Store(ch, box)
			c.Open(box, Way{Channel: ch, Credit: 1 << 16, Retries: n.retries, Groups: []string{""}})
		}
	})
}

func (n *node) AskWord(c *Callee, ch direct.Channel) {
	n.later(func() {
		over := direct.Over{Channel: ch, Next: direct.NextInstance, Keeps: true, Err: errs.New(errs.CodeActorUnavailable, "the instance has ended")}
		switch box, dead, _ := n.state(); {
		case dead:
			over.Next, over.Err = direct.NextNone, errs.New(errs.CodeActorDied, "it is dead")
		case n.boxOf(ch) == box && !n.fallen(box):
			over.Next = direct.NextSame
		}
		c.Over(over)
	})
}

func (n *node) boxOf(ch direct.Channel) *Mailbox {
	box, _ := n.of.Load(ch)
	return box.(*Mailbox)
}

func (n *node) fallen(box *Mailbox) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.boxes[box]
}

func (n *node) Submit(k *Call) {
	n.later(func() { k.OwnerAnswered(&direct.Outcome{Value: "by the owner"}) })
}
func (n *node) Revoke(*Call, direct.Wish) {}
func (n *node) Adopt(k *Call, _ direct.Effect) {
	n.adopted.Add(1)
	n.later(k.Adopted)
}
func (n *node) Report(*Call, *direct.Outcome) {}
func (n *node) HangUp(ch direct.Channel) {
	n.open.Add(-1)
	n.later(func() {
		if box := n.boxOf(ch); box != nil {
			box.Tell(direct.Dropped{Channel: ch})
		}
	})
}
func (n *node) Settles(*Call, *direct.Outcome)                  {}
func (n *node) Linked(*Callee, direct.Channel, direct.Instance) {}
func (n *node) Holds(*Callee) any                               { return nil }
func (n *node) LetsGo(any)                                      {}
func (n *node) Settled(k *Call, o *direct.Outcome)              { k.Own.(*waiting).end <- o }
func (n *node) AskHeld(c *Callee, ch direct.Channel, ackNo uint64, _ *direct.Outcome) {
	go c.Held(ch, ackNo)
}
func (n *node) Departs(k *Call)             { close(k.Own.(*waiting).departs) }
func (n *node) Answered(direct.HostEffect)  {}
func (n *node) TellOwner(direct.HostEffect) {}
func (n *node) NotHere(direct.HostEffect)   {}
func (n *node) Begun(direct.HostEffect)     {}
func (n *node) Interrupt(direct.HostEffect) {}
func (n *node) Ran(*direct.Incoming)        {}
func (n *node) HandOver()                   {}
func (n *node) Panicked(string, any, int)   { n.panics.Add(1) }

func (n *node) Spare(k *Call) {
	if n.spare != nil {
		n.spare(k)
	}
}

// Fallen has another instance made.
func (n *node) Fallen(direct.HostEffect) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boxes[n.box] = true
	n.later(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.make()
	})
}

// waiting is what waits for a call.
type waiting struct {
	end     chan *direct.Outcome
	departs chan struct{}
	seq     int
}

// call makes a call of a caller, the seq-th.
func (n *node) call(by ids.TaskID, seq int, set ...func(*Call)) *Call {
	k := &Call{Own: &waiting{end: make(chan *direct.Outcome, 2), departs: make(chan struct{}), seq: seq}}
	k.ID, k.Caller, k.Bytes = ids.Derive(by, uint64(seq)), by, 64
	for _, f := range set {
		f(k)
	}
	n.p.Begin(theActor, k)
	return k
}

// get waits for the end of a call.
func (k *Call) get() *direct.Outcome { return <-k.Own.(*waiting).end }

// caller is a task that calls.
func caller(i int) ids.TaskID { return ids.Derive(ids.RootTask(1, 1), uint64(100+i)) }

// echo answers a call with its number among those of its caller.
func echo(in *direct.Incoming) direct.Finished {
	return direct.Finished{Outcome: &direct.Outcome{Value: seqOf(in), Bytes: 8}}
}

func seqOf(in *direct.Incoming) int { return in.Payload.(*Call).Own.(*waiting).seq }
