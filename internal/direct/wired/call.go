package wired

import (
	"os"
	"sync/atomic"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/lend"
	"mobula/wire"
)

// Call is the end of the process that calls.
type Call struct {
	out
	c       *shell.Callee
	ch      direct.Channel
	groups  int
	unread  int64
	share   Sharer
	page    atomic.Pointer[page] // nil: it has not come
	done    chan struct{}
	why     error             // set before done is closed
	sent    uint64            // guarded by mu: calls
	methods methods           // guarded by mu
	free    []*wire.Call      // guarded by mu: to be used again
	got     uint64            // of the goroutine that reads: answers
	hello   bool              // of the same: the other side has said what it speaks
	last    bool              // of the same: and that nothing follows
	answers []direct.Answered // of the same: memory
}

// freeMost is how many messages an end keeps to be used again.
const freeMost = 64

// Sharer has the owner know of a call, and then calls done, once, without a lock of this package or of shell's.
type Sharer func(k *shell.Call, done func(*errs.Error))

// OpenCall answers a Callee's AskWay with a channel to another process, where answers of so many bytes may be left unacknowledged. By the lender a goroutine that waits for
// an answer reads it itself; nil: none does. The socket is taken over, also on an error.
func OpenCall(f *os.File, c *shell.Callee, w shell.Way, unread int64, lender *lend.Lender, share Sharer) (*Call, error) {
	x := &Call{c: c, ch: w.Channel, groups: len(w.Groups), unread: unread, share: share, done: make(chan struct{})}
	x.reuse = x.used
	var err error
	if x.out.c, err = open(f, lender != nil, true); err != nil {
		return nil, err
	}
	x.say(&wire.OpenChannel{Version: wire.ChannelVersion, Channel: uint64(x.ch)})
	c.OpenFar(x, w)
	x.Flush()
	go x.read(lender)
	return x, nil
}

// Done is closed when the channel has ended, and nothing is left of it here.
func (x *Call) Done() <-chan struct{} { return x.done }

// Why is the reason of the end, once Done is closed.
func (x *Call) Why() error { return x.why }

// Send implements shell.Far.
func (x *Call) Send(k *shell.Call) {
	s, ok := k.Own.(talk.Straight)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.closing {
		return
	}
	if !ok {
		x.out.c.Fail(errs.New(errs.CodeInvalid, "call %v says nothing that could be sent", k.ID))
		return
	}
	spec := s.TaskSpec()
	no, fresh := x.methods.number(spec.Opts)
	if fresh {
		x.sayLocked(&wire.Method{Number: no, Actor: spec.Actor, Opts: spec.Opts})
	}
	var m *wire.Call
	if n := len(x.free); n > 0 {
		m, x.free = x.free[n-1], x.free[:n-1]
	} else {
		m = new(wire.Call)
	}
	x.sent++
	*m = wire.Call{Spec: spec, No: x.sent, Method: no, Group: uint32(k.Group), Tries: uint32(k.Tries()), Values: s.Arguments()}
	x.sayLocked(m)
}

// used is called with mu held.
func (x *Call) used(m wire.Msg) {
	if k, ok := m.(*wire.Call); ok && len(x.free) < freeMost {
		*k = wire.Call{}
		x.free = append(x.free, k)
	}
}

// Withdraw implements shell.Far.
func (x *Call) Withdraw(no uint64, w direct.Wish, unbegun *direct.Outcome) {
	m := &wire.Withdraw{No: no, Force: w.Force, Recursive: w.Recursive, Insist: w.Insist}
	if unbegun != nil {
		m.Unbegun = unbegun.Err
	}
	x.say(m)
}

// Took implements shell.Far.
func (x *Call) Took(upTo uint64) { x.say(&wire.Took{UpTo: upTo}) }

// HangUp implements shell.Far.
func (x *Call) HangUp() { x.hangUp() }

// Begun implements shell.Far. Where the page has not come, the actor's process has read no call.
func (x *Call) Begun() []uint64 {
	if p := x.page.Load(); p != nil {
		return p.counts()
	}
	return make([]uint64, x.groups)
}

// Unread implements shell.Far.
func (x *Call) Unread() int64 { return x.unread }

// Flush implements shell.Far.
func (x *Call) Flush() { x.flush() }

// read reads until the channel has ended.
func (x *Call) read(lender *lend.Lender) {
	var err error
	if lender != nil {
		err = x.out.c.Serve(lender, x.take)
	}
	for err == nil {
		var batch []wire.Msg
		if batch, err = x.out.c.Recv(); err == nil {
			err = x.take(batch)
		}
	}
	x.why = err
	x.end()
	x.out.c.Fail(err)
	if p := x.page.Load(); p != nil {
		p.unmap() // what has begun when the other side was gone
	}
	x.c.Came(x.ch, nil, false, true)
	close(x.done)
}

// take tells the Callee what has come.
func (x *Call) take(batch []wire.Msg) (err error) {
	said := false
	for _, m := range batch {
		if err = x.one(m); err != nil {
			break
		}
		said = said || m.Kind() == wire.KindLastAnswer
	}
	if len(x.answers) > 0 || said {
		x.c.Came(x.ch, x.answers, said, false)
		clear(x.answers)
		x.answers = x.answers[:0]
	}
	return err
}

func (x *Call) one(m wire.Msg) error {
	if !x.hello {
		x.hello = true
		return x.greeted(m)
	}
	if x.last {
		return errs.New(errs.CodeProtocol, "on channel %d a %v follows the last answer", x.ch, m.Kind())
	}
	switch m := m.(type) {
	case *wire.Answered:
		x.got++
		if m.AckNo != x.got || m.No == 0 || m.No > x.calls() {
			return errs.New(errs.CodeProtocol, "on channel %d answer %d to call %d comes as the %d-th, of %d calls", x.ch, m.AckNo, m.No, x.got, x.calls())
		}
		x.answers = append(x.answers, direct.Answered{Channel: x.ch, No: m.No, AckNo: m.AckNo, Said: direct.Said(m.Said), Outcome: outcomeOf(m), Holds: m.Holds})
	case *wire.Share:
		x.shared(m.No)
	case *wire.LastAnswer:
		x.last = true
	default:
		return errs.New(errs.CodeProtocol, "a %v comes from the actor's end of channel %d", m.Kind(), x.ch)
	}
	return nil
}

// shared has the owner told of a call. Of one that has ended here nobody wants the result.
func (x *Call) shared(no uint64) {
	done := func(err *errs.Error) {
		x.say(&wire.Shared{No: no, Err: err})
		x.flush()
	}
	if k := x.c.Sent(x.ch, no); k != nil {
		x.share(k, done)
	} else {
		done(errs.New(errs.CodeCancelled, "call %d of channel %d has ended", no, x.ch))
	}
}

// greeted takes what the actor's process says first, with its page.
func (x *Call) greeted(m wire.Msg) error {
	if err := greets(m, x.ch); err != nil {
		return err
	}
	f := m.(*wire.OpenChannel).Opened
	if f == nil {
		return errs.New(errs.CodeProtocol, "the actor's end of channel %d has no page for begun calls", x.ch)
	}
	p, err := openPage(f, false)
	if err != nil {
		return err
	}
	x.page.Store(p)
	if len(p.begun) != x.groups {
		return errs.New(errs.CodeProtocol, "a page for %d concurrency groups, of an actor with %d", len(p.begun), x.groups)
	}
	return nil
}

func (x *Call) calls() uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.sent
}

// greets checks what comes first.
func greets(m wire.Msg, ch direct.Channel) error {
	o, ok := m.(*wire.OpenChannel)
	switch {
	case !ok:
		return errs.New(errs.CodeProtocol, "a %v is first on channel %d", m.Kind(), ch)
	case o.Version != wire.ChannelVersion:
		return errs.New(errs.CodeVersion, "the other end of channel %d speaks version %d of channels, this build version %d", ch, o.Version, wire.ChannelVersion)
	case direct.Channel(o.Channel) != ch:
		return errs.New(errs.CodeProtocol, "the other end of channel %d takes it for channel %d", ch, o.Channel)
	}
	return nil
}

// cameTo is an outcome that has come, in one allocation.
type cameTo struct {
	direct.Outcome
	talk.Answer
	ran wire.Run
}

// outcomeOf is what an answer says; nil: nothing but how far the call has come.
func outcomeOf(m *wire.Answered) *direct.Outcome {
	if m.Said == wire.SaidWaits || m.Said == wire.SaidBegun {
		return nil
	}
	ran := wire.Run{Worker: m.Worker, Lease: m.Lease, Times: m.Times}
	if m.Results == nil && m.Items == 0 && ran == (wire.Run{}) {
		return &direct.Outcome{Err: m.Err, Bytes: int64(m.Bytes)}
	}
	o := &cameTo{Outcome: direct.Outcome{Err: m.Err, Bytes: int64(m.Bytes)}, Answer: talk.Answer{Results: m.Results, Items: m.Items}}
	if o.Value = &o.Answer; ran != (wire.Run{}) {
		o.ran = ran
		o.Ran = &o.ran
	}
	return &o.Outcome
}

var _ shell.Far = (*Call)(nil)
