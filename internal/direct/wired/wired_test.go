package wired

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"mobula/internal/direct"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

// Two actors, each in the process that calls the other, are called by several callers at once. Each answer comes to its own call, and calls of one caller begin in order.
func TestCallsGoBothWaysInOrder(t *testing.T) {
	const callers, each = 4, 2500
	var all sync.WaitGroup
	for range 2 {
		var begun [callers]atomic.Uint64
		of := make(map[ids.TaskID]int)
		for i := range callers {
			of[ids.Derive(ids.RootTask(1, 1), uint64(100+i))] = i
		}
		u, _, _ := connected(t, func(k *wire.Call) *direct.Outcome {
			i := of[k.Spec.Parent]
			if was := begun[i].Swap(k.Spec.Seq); was+1 != k.Spec.Seq || k.Spec.Actor != theActor || k.Spec.Opts.Func != "method" {
				t.Errorf("call %d begins after %d: %+v", k.Spec.Seq, was, k.Spec)
			}
			return value(number(k.Spec.Args[0].Value.Data))
		})
		for i := range callers {
			all.Go(func() {
				var open []*asked
				for seq := uint64(1); seq <= each; seq++ {
					open = append(open, u.call(i, seq, binary.LittleEndian.AppendUint64(nil, seq*3)))
					if len(open) < 200 && seq < each {
						continue
					}
					for _, a := range open {
						a.gives(t, a.spec.Seq*3)
						a.Released()
					}
					open = open[:0]
				}
			})
		}
	}
	all.Wait()
}

// What goes with a call and its answer comes as it was.
func TestWhatGoesWithACall(t *testing.T) {
	var last atomic.Pointer[wire.Call]
	ref := ids.RootTask(3, 4).Return(0)
	failed := &errs.Error{Code: errs.CodeTaskFailed, Msg: "no", Refs: nil}
	u, _, _ := connected(t, func(k *wire.Call) *direct.Outcome {
		if last.Store(k); k.Spec.Seq == 2 {
			return &direct.Outcome{Err: failed}
		}
		return value(9)
	})
	a := u.call(1, 1, []byte("data"), func(a *asked) {
		a.spec.Args = append(a.spec.Args, wire.Arg{Ref: ref})
		a.values = []wire.ArgValue{{Index: 1, Result: wire.Result{Kind: wire.ResultStored, Size: 99, Value: wire.Value{Refs: []ids.ObjectID{ref}}}}}
		a.spec.Deadline, a.spec.Submitted, a.spec.Callsite = 1<<60, 5, "file.go:12"
		a.spec.Trace = wire.TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1}
	})
	a.gives(t, 9)
	came := last.Load()
	if got, want := came.Spec, a.spec; got.Deadline != want.Deadline || got.Trace != want.Trace || got.Callsite != want.Callsite || got.Submitted != 5 || got.ID != want.ID ||
		string(got.Args[0].Value.Data) != "data" || got.Args[1].Ref != ref || len(came.Values) != 1 || came.Values[0].Result.Size != 99 || came.Values[0].Result.Value.Refs[0] != ref {
		t.Errorf("it comes as %+v with %+v", got, came.Values)
	}
	if o := u.call(1, 2, nil).get(t); o.Err == nil || o.Err.Code != errs.CodeTaskFailed || o.Err.Msg != "no" {
		t.Errorf("a call that fails has come to %+v", o)
	}
	if o := u.call(1, 3, nil, func(a *asked) { a.spec.Args = []wire.Arg{{Value: wire.Value{Data: make([]byte, 3<<20)}}} }).get(t); o.Err != nil {
		t.Errorf("a large call has come to %+v", o.Err)
	}
}

// A call that waits in the mailbox is cancelled, another is ended only since it has not begun, and one that runs goes on.
func TestCallsAreWithdrawn(t *testing.T) {
	runs, goOn := make(chan bool), make(chan bool)
	u, _, _ := connected(t, func(k *wire.Call) *direct.Outcome {
		if k.Spec.Seq == 1 {
			runs <- true
			<-goOn
		}
		return echo(k)
	})
	running, cancelled, ended, last := u.call(1, 1, nil), u.call(1, 2, nil), u.call(1, 3, nil), u.call(1, 4, nil)
	<-runs
	why := errs.New(errs.CodeDeadlock, "it cannot begin")
	cancelled.Cancel(direct.Wish{Recursive: true})
	running.EndUnbegun(why)
	ended.EndUnbegun(why)
	if o := cancelled.get(t); o.Err == nil || o.Err.Code != errs.CodeCancelled {
		t.Errorf("the call that is cancelled has come to %+v", o)
	}
	if o := ended.get(t); o.Err == nil || o.Err.Code != errs.CodeDeadlock {
		t.Errorf("the call that has not begun has come to %+v", o)
	}
	goOn <- true
	running.gives(t, 1)
	last.gives(t, 4)
}

// An instance that ends says of each call how far it has come, and that nothing follows.
func TestAnInstanceEnds(t *testing.T) {
	runs, goOn := make(chan bool), make(chan bool)
	u, h, _ := connected(t, func(k *wire.Call) *direct.Outcome {
		runs <- true
		<-goOn
		return echo(k)
	})
	a, b := u.call(1, 1, nil), u.call(1, 2, nil)
	<-runs
	close(u.ways)
	h.box.Tell(direct.Stopping{})
	if o := a.get(t); o.Err == nil || o.Err.Code != errs.CodeActorUnavailable {
		t.Errorf("the call that ran has come to %+v", o)
	}
	if o := b.get(t); o.Err == nil || o.Err.Code != errs.CodeActorDied {
		t.Errorf("the call that has not begun has come to %+v", o)
	}
	close(goOn)
}

// More methods than there are numbers are called in turn: each call comes with its own.
func TestMethodsTakeTurns(t *testing.T) {
	of := make([]*wire.TaskOptions, wire.Methods+100)
	for i := range of {
		of[i] = &wire.TaskOptions{NumReturns: int32(i)}
	}
	u, _, _ := connected(t, func(k *wire.Call) *direct.Outcome { return value(uint64(k.Spec.Opts.NumReturns)) })
	var all []*asked
	for i := range 3 * len(of) {
		at := (i * 7) % len(of)
		all = append(all, u.call(1, uint64(i+1), nil, func(a *asked) { a.spec.Opts = of[at] }))
	}
	for _, a := range all {
		a.gives(t, uint64(a.spec.Opts.NumReturns))
	}
}

// A process that does not read stops its own channel, and no other.
func TestASlowReaderStopsItself(t *testing.T) {
	slow := newCalls(t)
	from, to := made(t)
	slow.ways <- from
	var stuck []*asked
	for seq := uint64(1); seq <= 100; seq++ { // 10 MB, of which 1 may be under way
		stuck = append(stuck, slow.call(1, seq, make([]byte, 100_000)))
	}
	u, _, _ := connected(t, echo)
	for seq := uint64(1); seq <= 100; seq++ {
		u.call(1, seq, nil).gives(t, seq)
	}
	if x := slow.x.Load(); x.out.c.Backlog() > 2<<20 || x.calls() > 11 {
		t.Errorf("%d calls were sent to a process that reads nothing, and %d bytes wait", x.calls(), x.out.c.Backlog())
	}
	h := newHosts(t, []int{1}, echo)
	h.open(to, 1)
	for i, a := range stuck {
		a.gives(t, uint64(i+1))
	}
	slow.p.Close()
	ended(t, "its channel", slow.x.Load().Done())
}

// Answers that are not read are not encoded without bound, and come when they are.
func TestAnswersWaitForTheirReader(t *testing.T) {
	from, to := made(t)
	h := newHosts(t, []int{1}, func(k *wire.Call) *direct.Outcome {
		o := value(k.Spec.Seq)
		o.Value.(*talk.Answer).Results[0].Value.Meta = make([]byte, 4000)
		o.Bytes = 1 // so the core does not hold them up
		return o
	})
	x := h.open(to, 1)
	c, err := open(from, false, true)
	if err != nil {
		t.Fatal(err)
	}
	send := []wire.Msg{&wire.OpenChannel{Version: wire.ChannelVersion, Channel: 1}, &wire.Method{Opts: theMethod}}
	const most = 2000
	for i := range uint64(most) {
		send = append(send, &wire.Call{No: i + 1, Spec: &wire.TaskSpec{ID: ids.RootTask(1, i), Seq: i + 1}})
	}
	if err := c.Send(send...); err != nil {
		t.Fatal(err)
	}
	for got := uint64(0); got < most; {
		batch, err := c.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if n := x.out.c.Backlog(); n > 2*backlog {
			t.Fatalf("%d bytes wait to be read", n)
		}
		for _, m := range batch {
			if a, ok := m.(*wire.Answered); ok {
				if got++; a.AckNo != got {
					t.Fatalf("answer %d comes as the %d-th", a.AckNo, got)
				}
			}
		}
	}
	c.Fail(errs.New(errs.CodeShutdown, "done"))
	ended(t, "the channel", x.Done())
}

// A goroutine that waits for an answer reads it itself, where it may.
func TestWhoWaitsReads(t *testing.T) {
	u, h := newCalls(t), newHosts(t, []int{1}, echo)
	u.lender = new(lend.Lender)
	from, to := made(t)
	x := h.open(to, 1)
	u.ways <- from
	for seq := uint64(1); seq <= 500; seq++ {
		a := u.call(1, seq, nil)
		a.o = a.read(u.lender)
		a.gives(t, seq)
		a.Released()
	}
	u.p.Close()
	ended(t, "the host's end", x.Done())
	ended(t, "the caller's end", u.x.Load().Done())
}

// A channel that has ended leaves neither goroutines nor descriptors.
func TestNothingIsLeftOfAChannel(t *testing.T) {
	count := func() (goroutines, files int) {
		in, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return runtime.NumGoroutine(), len(in)
	}
	goroutines, files := count()
	for range 20 {
		t.Run("", func(t *testing.T) {
			u, _, _ := connected(t, echo)
			u.call(1, 1, nil).gives(t, 1)
		})
	}
	testkit.Eventually(t, "all is gone", func() bool {
		runtime.GC() // what the runtime closes
		g, f := count()
		return g <= goroutines && f <= files+2 // those of the poller
	})
}

// Before a result is stored the owner is to know of its call, which the caller's process tells it. Where that is gone, or wants no answer any more, nobody waits for ever.
func TestTheCallerTellsTheOwner(t *testing.T) {
	var x *Host
	opened, goOn := make(chan struct{}), make(chan struct{})
	u, h := newCalls(t), newHosts(t, []int{1}, func(k *wire.Call) *direct.Outcome {
		<-opened
		if k.Spec.Seq == 2 {
			<-goOn // until its caller has given it up
		}
		if err := x.Share(k.No); err != nil {
			return &direct.Outcome{Err: err}
		}
		return echo(k)
	})
	defer h.box.Close()
	from, to := made(t)
	x = h.open(to, 1)
	close(opened)
	u.ways <- from
	u.call(1, 1, nil).gives(t, 1)
	late := u.call(1, 2, nil)
	late.Expired()
	if o := late.get(t); o.Err == nil || o.Err.Code != errs.CodeDeadline {
		t.Errorf("a call whose deadline has passed: %+v", o)
	}
	close(goOn)
	u.call(1, 3, nil).gives(t, 3)
	u.p.Close()
	ended(t, "the host's end", x.Done())
	if err := x.Share(4); err == nil || err.Code != errs.CodeDisconnected {
		t.Errorf("of a channel that has ended: %v", err)
	}
}
