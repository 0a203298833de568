package wired

import (
	"os"
	"sync"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/wire"
)

// Host is the end of the actor's process.
type Host struct {
	out
	m       *shell.Mailbox
	ch      direct.Channel
	payload func(*Host, *wire.Call) any
	page    *page
	done    chan struct{}
	why     error            // set before done is closed
	free    []*wire.Answered // guarded by mu: to be used again

	sharesMu sync.Mutex
	shares   map[uint64]chan *errs.Error // guarded by sharesMu: calls of which the owner is to know; nil: the channel has ended

	came    uint64             // of the goroutine that reads: calls
	hello   bool               // of the same: the other side has said what it speaks
	methods []wire.Method      // of the same, by number
	calls   []*direct.Incoming // of the same: memory
}

// OpenHost has a mailbox take calls of another process. What the mailbox has of each is payload's, which keeps the message. The socket is taken over, also on an error.
func OpenHost(f *os.File, m *shell.Mailbox, ch direct.Channel, payload func(*Host, *wire.Call) any) (*Host, error) {
	x := &Host{m: m, ch: ch, payload: payload, done: make(chan struct{}), shares: make(map[uint64]chan *errs.Error)}
	x.reuse = x.used
	if err := x.open(f); err != nil {
		return nil, err
	}
	m.Serve(ch, x.page.begun, x)
	go x.read()
	return x, nil
}

// open gives the other side the page. It is there before a call is read.
func (x *Host) open(f *os.File) error {
	page, err := makePage(x.m.Groups())
	if err != nil {
		_ = f.Close() // nobody uses it
		return err
	}
	defer func() { _ = page.Close() }() // the mapping stays, and the other side's
	if x.c, err = open(f, false, false); err != nil {
		return err
	}
	if x.page, err = mapCounts(page, true); err != nil {
		x.c.Fail(err)
		return err
	}
	if err = x.c.SendFD(&wire.OpenChannel{Version: wire.ChannelVersion, Channel: uint64(x.ch)}, page); err != nil {
		x.page.unmap()
		x.c.Fail(err)
	}
	return err
}

// Done is closed when the channel has ended, and nothing is left of it here.
func (x *Host) Done() <-chan struct{} { return x.done }

// Why is the reason of the end, once Done is closed.
func (x *Host) Why() error { return x.why }

// Close ends the channel, when what was said on it is written.
func (x *Host) Close() {
	x.hangUp()
	x.flush()
}

// Answer implements shell.Near.
func (x *Host) Answer(a *direct.Answered) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over || x.closing {
		return
	}
	var m *wire.Answered
	if n := len(x.free); n > 0 {
		m, x.free = x.free[n-1], x.free[:n-1]
	} else {
		m = new(wire.Answered)
	}
	m.No, m.AckNo, m.Said, m.Holds = a.No, a.AckNo, wire.Said(a.Said), a.Holds
	if o := a.Outcome; o != nil {
		m.Err, m.Bytes = o.Err, uint64(max(0, o.Bytes))
		switch v := o.Value.(type) {
		case nil:
		case *talk.Answer:
			if m.Results, m.Items = v.Results, v.Items; v.Ran != nil {
				m.Worker, m.Lease, m.Times = v.Ran.Worker, v.Ran.Lease, v.Ran.Times
			}
		default:
			m.Err = errs.New(errs.CodeNotEncodable, "call %d of channel %d has come to a %T, which cannot be sent", a.No, x.ch, v)
		}
	}
	x.sayLocked(m)
}

// used is called with mu held.
func (x *Host) used(m wire.Msg) {
	if a, ok := m.(*wire.Answered); ok && len(x.free) < freeMost {
		*a = wire.Answered{}
		x.free = append(x.free, a)
	}
}

// Last implements shell.Near.
func (x *Host) Last() { x.say(&wire.LastAnswer{}) }

// Flush implements shell.Near.
func (x *Host) Flush() { x.flush() }

// read reads until the channel has ended.
func (x *Host) read() {
	var err error
	for err == nil {
		var batch []wire.Msg
		if batch, err = x.c.Recv(); err == nil {
			err = x.take(batch)
		}
	}
	x.why = err
	x.end()
	x.c.Fail(err)
	x.m.Unserve(x.ch) // from here on nothing is written into the page
	x.page.unmap()
	x.sharesMu.Lock()
	for _, c := range x.shares {
		c <- gone(x.ch)
	}
	x.shares = nil
	x.sharesMu.Unlock()
	close(x.done)
}

// take tells the mailbox what has come: calls that came together at once.
func (x *Host) take(batch []wire.Msg) error {
	for _, m := range batch {
		if k, ok := m.(*wire.Call); ok && x.hello {
			if err := x.call(k); err != nil {
				x.arrive()
				return err
			}
			continue
		}
		x.arrive()
		if err := x.other(m); err != nil {
			return err
		}
	}
	x.arrive()
	return nil
}

func (x *Host) arrive() {
	if len(x.calls) > 0 {
		x.m.Arrive(x.ch, x.calls)
		clear(x.calls)
		x.calls = x.calls[:0]
	}
}

func (x *Host) call(k *wire.Call) error {
	if x.came++; k.No != x.came {
		return errs.New(errs.CodeProtocol, "call %d of channel %d comes as the %d-th", k.No, x.ch, x.came)
	}
	if int(k.Method) >= len(x.methods) || x.methods[k.Method].Opts == nil {
		return errs.New(errs.CodeProtocol, "call %d of channel %d is one of method %d, which was not said", k.No, x.ch, k.Method)
	}
	of := &x.methods[k.Method]
	k.Spec.Opts, k.Spec.Actor, k.Spec.Kind = of.Opts, of.Actor, wire.TaskActorCall
	x.calls = append(x.calls, &direct.Incoming{ID: k.Spec.ID, Tries: int32(k.Tries), Group: int(k.Group), Payload: x.payload(x, k)})
	return nil
}

func (x *Host) other(m wire.Msg) error {
	if !x.hello {
		x.hello = true
		return greets(m, x.ch)
	}
	switch m := m.(type) {
	case *wire.Method:
		return x.method(m)
	case *wire.Withdraw:
		e := direct.Unwanted{Channel: x.ch, No: m.No, Wish: direct.Wish{Force: m.Force, Recursive: m.Recursive, Insist: m.Insist}}
		if m.Unbegun != nil {
			e.Unbegun = &direct.Outcome{Err: m.Unbegun}
		}
		x.m.Tell(e)
	case *wire.Took:
		x.m.Tell(direct.Acked{Channel: x.ch, UpTo: m.UpTo})
	case *wire.Shared:
		x.shared(m)
	default:
		return errs.New(errs.CodeProtocol, "a %v comes from the calling end of channel %d", m.Kind(), x.ch)
	}
	return nil
}

// Share waits until the owner knows of a call that runs, which its caller tells it: so before a result of it is stored. It fails where the caller wants no answer any more, or
// the channel has ended.
func (x *Host) Share(no uint64) *errs.Error {
	c := make(chan *errs.Error, 1)
	x.sharesMu.Lock()
	if x.shares == nil {
		x.sharesMu.Unlock()
		return gone(x.ch)
	}
	x.shares[no] = c
	x.sharesMu.Unlock()
	x.say(&wire.Share{No: no})
	x.flush()
	return <-c
}

func (x *Host) shared(m *wire.Shared) {
	x.sharesMu.Lock()
	defer x.sharesMu.Unlock()
	if c := x.shares[m.No]; c != nil {
		delete(x.shares, m.No)
		c <- m.Err
	}
}

func gone(ch direct.Channel) *errs.Error {
	return errs.New(errs.CodeDisconnected, "channel %d has ended: nobody waits for what is called by it", ch)
}

func (x *Host) method(m *wire.Method) error {
	if m.Number >= wire.Methods || m.Number > uint32(len(x.methods)) || m.Opts == nil {
		return errs.New(errs.CodeProtocol, "method %d of channel %d, which has %d, and may have %d", m.Number, x.ch, len(x.methods), wire.Methods)
	}
	if m.Number == uint32(len(x.methods)) {
		x.methods = append(x.methods, *m)
	} else {
		x.methods[m.Number] = *m
	}
	return nil
}

var _ shell.Near = (*Host)(nil)
