package worker

import (
	"sync/atomic"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// straight is a peer whose process calls its actors straight. Of an instance that has ended it says that no other follows: but calls that have not begun hear that there is
// no way, and those that have that their actor was unavailable.
type straight struct {
	*peer
	boxes    *shell.Mailboxes
	proc     *shell.Process
	actor    ids.ActorID
	lease    direct.Instance
	channels atomic.Uint64
}

// newStraight makes an actor on lease 1.
func newStraight(t testing.TB, cfg Config, opts func(p *peer) *wire.TaskOptions) *straight {
	s := &straight{boxes: new(shell.Mailboxes), lease: 1}
	cfg.Mailboxes = s.boxes
	s.peer = newPeer(t, cfg)
	s.proc = shell.NewProcess(1<<20, s)
	s.actor = s.create(1, opts(s.peer))
	return s
}

func (p *peer) plain() *wire.TaskOptions {
	return p.counter(&counter{stopped: make(chan struct{})})
}

func (s *straight) AskWay(c *shell.Callee) {
	go func() {
		if m := s.boxes.Of(s.lease); m != nil {
			c.Open(m, shell.Way{Instance: s.lease, Channel: direct.Channel(s.channels.Add(1)), Credit: 1 << 20, Groups: []string{""}})
			return
		}
		c.NoWay(true, errs.New(errs.CodeActorDied, "it is dead"))
	}()
}

func (s *straight) AskWord(c *shell.Callee, ch direct.Channel) {
	go c.Over(direct.Over{Channel: ch, Next: direct.NextInstance, Keeps: true, Err: errs.New(errs.CodeActorUnavailable, "the instance has ended")})
}

func (s *straight) Submit(*shell.Call)                                             {}
func (s *straight) Revoke(*shell.Call, direct.Wish)                                {}
func (s *straight) Adopt(*shell.Call, direct.Effect)                               {}
func (s *straight) Report(*shell.Call, *direct.Outcome)                            {}
func (s *straight) HangUp(direct.Channel)                                          {}
func (s *straight) Settles(*shell.Call, *direct.Outcome)                           {}
func (s *straight) Linked(*shell.Callee, direct.Channel, direct.Instance)          {}
func (s *straight) AskHeld(*shell.Callee, direct.Channel, uint64, *direct.Outcome) {}
func (s *straight) Departs(*shell.Call)                                            {}
func (s *straight) Panicked(event string, reason any, _ int) {
	s.t.Errorf("a core has panicked, at %s: %v", event, reason)
}
func (*straight) Holds(*shell.Callee) any { return nil }
func (*straight) LetsGo(any)              {}

func (*straight) Spare(*shell.Call) {}
func (s *straight) Settled(k *shell.Call, o *direct.Outcome) {
	k.Own.(interface{ settled(o *direct.Outcome) }).settled(o)
}

// asked is a call that goes straight.
type asked struct {
	t    testing.TB
	k    shell.Call
	spec *wire.TaskSpec
	end  chan *direct.Outcome

	announced int
	args      []wire.ArgValue
}

func (a *asked) TaskSpec() *wire.TaskSpec { return a.spec }

func (a *asked) Arguments() []wire.ArgValue { return a.args }

func (a *asked) Announce() error {
	a.announced++
	return nil
}

func (a *asked) settled(o *direct.Outcome) { a.end <- o }

var _ talk.Straight = (*asked)(nil)

// ask makes a call of a group, by its number.
func (s *straight) ask(opts *wire.TaskOptions, set ...func(*asked)) *asked {
	a := &asked{t: s.t, spec: s.call(s.actor, opts).Spec, end: make(chan *direct.Outcome, 1)}
	a.k.Own, a.k.Bytes = a, 64
	for _, f := range set {
		f(a)
	}
	a.k.ID, a.k.Caller = a.spec.ID, ids.RootTask(9, 5)
	s.proc.Begin(s.actor, &a.k)
	return a
}

func group(n int) func(*asked) { return func(a *asked) { a.k.Group = n } }

// outcome waits for the end.
func (a *asked) outcome() *direct.Outcome {
	a.t.Helper()
	return testkit.Receive(a.t, "the end of a call", a.end)
}

// results waits for the results of a call that succeeds.
func (a *asked) results() []wire.Result {
	a.t.Helper()
	o := a.outcome()
	if o.Err != nil {
		a.t.Fatalf("a call came to %v", o.Err)
	}
	if o.Value == nil {
		return nil
	}
	return o.Value.(*talk.Answer).Results
}

// fails waits for the end of a call that fails with a code.
func (a *asked) fails(code errs.Code) *errs.Error {
	a.t.Helper()
	o := a.outcome()
	if o.Err == nil || o.Err.Code != code {
		a.t.Errorf("a call came to %+v, want code %v", o, code)
	}
	return o.Err
}
