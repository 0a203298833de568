package wired

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

var theActor = ids.ActorID(ids.Derive(ids.RootTask(1, 1), 1))

var theMethod = &wire.TaskOptions{Func: "method", NumReturns: 1}

// asked is a call, and what waits for it.
type asked struct {
	shell.Call
	spec   *wire.TaskSpec
	values []wire.ArgValue
	end    chan *direct.Outcome
	o      *direct.Outcome // once it was received
}

func (a *asked) TaskSpec() *wire.TaskSpec   { return a.spec }
func (a *asked) Arguments() []wire.ArgValue { return a.values }
func (a *asked) Announce() error            { return nil }

var _ talk.Straight = (*asked)(nil)

// calls is a process that calls one actor.
type calls struct {
	t    testing.TB
	p    *shell.Process
	ways chan *os.File // each for the next channel; closed: the actor is dead
	last atomic.Uint64
	x    atomic.Pointer[Call] // the channel that there is
	w    shell.Way

	lender *lend.Lender // nil: its goroutines do not read
}

func newCalls(t testing.TB, groups ...string) *calls {
	u := &calls{t: t, ways: make(chan *os.File, 4), w: shell.Way{Credit: 1 << 20, Groups: append([]string{""}, groups...)}}
	u.p = shell.NewProcess(1<<30, u)
	return u
}

func (u *calls) AskWay(c *shell.Callee) {
	go func() {
		e, ok := <-u.ways
		if !ok {
			c.NoWay(true, errs.New(errs.CodeActorDied, "it is dead"))
			return
		}
		w := u.w
		w.Channel = direct.Channel(u.last.Add(1))
		x, err := OpenCall(e, c, w, 1<<20, u.lender, shares)
		if err != nil {
			u.t.Error(err)
			c.NoWay(true, errs.From(err))
			return
		}
		u.x.Store(x)
	}()
}

func (u *calls) AskWord(c *shell.Callee, ch direct.Channel) {
	go c.Over(direct.Over{Channel: ch, Next: direct.NextInstance, Keeps: true, Err: errs.New(errs.CodeActorUnavailable, "it may have begun")})
}
func (u *calls) Submit(*shell.Call)                                    { u.t.Error("a call goes by the owner") }
func (u *calls) Revoke(*shell.Call, direct.Wish)                       {}
func (u *calls) Adopt(*shell.Call, direct.Effect)                      {}
func (u *calls) Report(*shell.Call, *direct.Outcome)                   {}
func (u *calls) HangUp(direct.Channel)                                 {}
func (u *calls) Linked(*shell.Callee, direct.Channel, direct.Instance) {}
func (u *calls) Settles(*shell.Call, *direct.Outcome)                  {}
func (*calls) Spare(*shell.Call)                                       {}

func (u *calls) Settled(k *shell.Call, o *direct.Outcome) { k.Own.(*asked).end <- o }
func (u *calls) AskHeld(c *shell.Callee, ch direct.Channel, ackNo uint64, _ *direct.Outcome) {
	go c.Held(ch, ackNo)
}
func (u *calls) Departs(*shell.Call)                      {}
func (u *calls) Holds(*shell.Callee) any                  { return nil }
func (u *calls) LetsGo(any)                               {}
func (u *calls) Panicked(event string, reason any, _ int) { u.t.Errorf("%s: %v", event, reason) }

// call makes the seq-th call of a caller, with data as its argument.
func (u *calls) call(by int, seq uint64, data []byte, set ...func(*asked)) *asked {
	from := ids.Derive(ids.RootTask(1, 1), uint64(100+by))
	a := &asked{end: make(chan *direct.Outcome, 1)}
	a.spec = &wire.TaskSpec{ID: ids.Derive(from, seq), Parent: from, Opts: theMethod, Kind: wire.TaskActorCall, Actor: theActor, Seq: seq}
	if data != nil {
		a.spec.Args = []wire.Arg{{Value: wire.Value{Data: data}}}
	}
	a.Own, a.ID, a.Caller, a.Bytes = a, a.spec.ID, from, int64(200+len(data))
	for _, f := range set {
		f(a)
	}
	u.p.Begin(theActor, &a.Call)
	return a
}

// get waits for the end of a call.
func (a *asked) get(t testing.TB) *direct.Outcome {
	t.Helper()
	if a.o == nil {
		a.o = testkit.Receive(t, "the end of a call", a.end)
	}
	return a.o
}

// Woken implements lend.Waiter.
func (a *asked) Woken() bool { return len(a.end) > 0 }

// read is get of a goroutine that may read itself.
func (a *asked) read(l *lend.Lender) *direct.Outcome {
	if !l.Read(context.Background(), a) {
		defer l.Woken()
	}
	return <-a.end
}

// gives checks that a call has come to a number.
func (a *asked) gives(t testing.TB, want uint64) {
	t.Helper()
	o := a.get(t)
	if o.Err != nil {
		t.Fatalf("call %d has failed: %v", a.spec.Seq, o.Err)
	}
	if v, ok := o.Value.(*talk.Answer); !ok || len(v.Results) != 1 || number(v.Results[0].Value.Data) != want {
		t.Fatalf("call %d has come to %+v, want %d", a.spec.Seq, o.Value, want)
	}
}

func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// hosts is the actor's process.
type hosts struct {
	t    testing.TB
	box  *shell.Mailbox
	last atomic.Bool // it has said that nothing follows, on a channel that is gone
}

// newHosts makes an actor that runs calls with run.
func newHosts(t testing.TB, groups []int, run func(k *wire.Call) *direct.Outcome) *hosts {
	h := &hosts{t: t}
	h.box = shell.NewMailbox(shell.Config{
		HostConfig: direct.HostConfig{Groups: groups, Unread: 1 << 20}, Instance: 7, Up: h,
		Run:   func(in *direct.Incoming, f *direct.Finished) { f.Outcome = run(in.Payload.(*wire.Call)) },
		Spawn: func(f func()) bool { go f(); return true },
	})
	return h
}

func (h *hosts) Answered(f direct.HostEffect) {
	if f.Do == direct.SayLast {
		h.last.Store(true)
	}
}
func (h *hosts) TellOwner(direct.HostEffect)              {}
func (h *hosts) NotHere(direct.HostEffect)                {}
func (h *hosts) Fallen(direct.HostEffect)                 {}
func (h *hosts) Begun(direct.HostEffect)                  {}
func (h *hosts) Interrupt(direct.HostEffect)              {}
func (h *hosts) Ran(*direct.Incoming)                     {}
func (h *hosts) HandOver()                                {}
func (h *hosts) Panicked(event string, reason any, _ int) { h.t.Errorf("%s: %v", event, reason) }

func (h *hosts) open(e *os.File, ch direct.Channel) *Host {
	h.t.Helper()
	x, err := OpenHost(e, h.box, ch, func(_ *Host, k *wire.Call) any { return k })
	if err != nil {
		h.t.Fatal(err)
	}
	return x
}

// value is an outcome with a number.
func value(n uint64) *direct.Outcome {
	v := wire.Value{Data: binary.LittleEndian.AppendUint64(nil, n)}
	return &direct.Outcome{Bytes: 8, Value: &talk.Answer{Results: []wire.Result{{Kind: wire.ResultInline, Size: 8, Value: v}}}}
}

// echo answers a call with its number.
func echo(k *wire.Call) *direct.Outcome { return value(k.Spec.Seq) }

// connected is a process that calls, and one of the actor, in this process.
func connected(t testing.TB, run func(k *wire.Call) *direct.Outcome) (*calls, *hosts, *Host) {
	t.Helper()
	u, h := newCalls(t), newHosts(t, []int{1}, run)
	from, to := made(t)
	x := h.open(to, 1)
	u.ways <- from
	t.Cleanup(func() {
		u.p.Close()
		ended(t, "the host's end", x.Done())
		if c := u.x.Load(); c != nil {
			ended(t, "the caller's end", c.Done())
		}
		h.box.Close()
	})
	return u, h, x
}

func made(t testing.TB) (caller, host *os.File) {
	t.Helper()
	caller, host, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	return caller, host
}

func ended(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	testkit.Receive(t, what, done)
}

// The other process is this test's program, told by its environment what to be.
const roleVar = "MOBULA_TEST_WIRED"

var roles = map[string]func(e *os.File){}

// roleArg is the argument of a role: the call at which it ends itself, and how many concurrency groups it has.
var roleArg string

// child starts the program as another process with an end of a channel, and more files. A role may have an argument behind a blank.
func child(t testing.TB, role string, e *os.File, more ...*os.File) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), roleVar+"="+role)
	cmd.ExtraFiles = append([]*os.File{e}, more...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = e.Close() // the child has it
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // as a rule it has ended
		_ = cmd.Wait()
	})
	return cmd
}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		role, roleArg, _ = strings.Cut(role, " ")
		roles[role](os.NewFile(3, "channel"))
		os.Exit(0)
	}
	os.Exit(testkit.Tidy(m).Run())
}

// shares is an owner that knows of every call when it is asked.
func shares(_ *shell.Call, done func(*errs.Error)) { done(nil) }
