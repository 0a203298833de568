package client

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"mobula/internal/direct"
	"mobula/internal/direct/shell"
	"mobula/internal/direct/talk"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// host is an actor in the process of a client, with the part of the owner that its calls need.
type host struct {
	*fakeNode
	boxes shell.Mailboxes
	box   *shell.Mailbox
	actor ids.ActorID
	h     *Handle // of the actor
	way   wire.Way
	left  atomic.Int32 // goroutines of the actor

	adopted map[ids.TaskID]bool // guarded by mu
	run     func(spec *wire.TaskSpec) *direct.Outcome
	runs    func(k talk.Straight) *direct.Outcome // in place of run, unless nil
}

// newHost makes an actor whose methods run does.
func newHost(t testing.TB, run func(spec *wire.TaskSpec) *direct.Outcome) *host {
	t.Helper()
	a := &host{run: run, adopted: make(map[ids.TaskID]bool)}
	a.box = shell.NewMailbox(shell.Config{HostConfig: direct.HostConfig{Groups: []int{1, 1}, Unread: 1 << 20}, Instance: 9, Up: a,
		Run: func(in *direct.Incoming, f *direct.Finished) {
			k := in.Payload.(*shell.Call).Own.(talk.Straight)
			if a.runs != nil {
				f.Outcome = a.runs(k)
				return
			}
			f.Outcome = a.run(k.TaskSpec())
		},
		Spawn: func(f func()) bool {
			a.left.Add(1)
			go func() { f(); a.left.Add(-1) }()
			return true
		}})
	a.boxes.Add(a.box)
	t.Cleanup(func() {
		testkit.Eventually(t, "the actor's goroutines end", func() bool { a.box.Sweep(0); return a.left.Load() == 0 })
	})
	a.fakeNode = newFake(t, Config{Mailboxes: &a.boxes})
	a.told = a.talks
	create := &wire.TaskSpec{ID: a.c.Root().NextTask(), Parent: a.c.Root().Task, Kind: wire.TaskActorCreate, Opts: plain}
	create.Actor = ids.ActorID(create.ID)
	hs, err := a.c.Submit(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	a.actor, a.h = create.Actor, hs[0]
	a.way = wire.Way{Actor: a.actor, Instance: 9, Channel: 1, Groups: []string{"", "other"}}
	return a
}

// talks is the owner. The fake node's lock is held.
func (a *host) talks(m wire.Msg) []wire.Msg {
	switch m := m.(type) {
	case *wire.AskWay:
		way := a.way
		a.way.Channel++
		return []wire.Msg{&way}
	case *wire.AskWord:
		return []wire.Msg{&wire.Over{Actor: a.actor, Channel: m.Channel, Next: wire.NextNone, Err: errs.New(errs.CodeActorDied, "it is dead")}}
	case *wire.Adopt:
		if !a.adopted[m.Spec.ID] { // later words of it give no handles
			for i := range max(0, int(m.Spec.Opts.NumReturns)) {
				a.held[m.Spec.ID.Return(i)] = true
			}
			for _, n := range m.Spec.Promises {
				a.held[ids.Derive(m.Spec.ID, uint64(n)).Return(0)] = true
			}
		}
		a.adopted[m.Spec.ID] = true
		a.reported(m.Spec.ID, m.Outcome)
		return []wire.Msg{&wire.Adopted{Task: m.Spec.ID}}
	}
	return nil
}

func (a *host) reported(task ids.TaskID, o *wire.CallOutcome) {
	if o == nil {
		return
	}
	for i, r := range o.Results {
		if _, stored := a.extents[task.Return(i)]; !stored {
			a.objects[task.Return(i)] = r
		}
	}
}

// call makes a call of the actor.
func (a *host) call(opts *wire.TaskOptions, with ...func(*wire.TaskSpec)) (*wire.TaskSpec, []*Handle) {
	a.t.Helper()
	spec := &wire.TaskSpec{ID: a.c.Root().NextTask(), Parent: a.c.Root().Task, Kind: wire.TaskActorCall, Actor: a.actor, Opts: opts}
	for _, w := range with {
		w(spec)
	}
	hs, err := a.c.Submit(a.t.Context(), spec)
	if err != nil {
		a.t.Fatal(err)
	}
	return spec, hs
}

// saw tells how many messages of a type the node has seen.
func saw[M wire.Msg](a *host) (all []M) {
	for _, m := range a.log {
		if x, ok := m.(M); ok {
			all = append(all, x)
		}
	}
	return all
}

func (*host) Answered(direct.HostEffect)  {}
func (*host) TellOwner(direct.HostEffect) {}
func (*host) NotHere(direct.HostEffect)   {}
func (*host) Fallen(direct.HostEffect)    {}
func (*host) Begun(direct.HostEffect)     {}
func (*host) Interrupt(direct.HostEffect) {}
func (*host) Ran(*direct.Incoming)        {}
func (*host) HandOver()                   {}
func (a *host) Panicked(event string, reason any, _ int) {
	a.t.Errorf("%s brings a core down: %v", event, reason)
}

// says is an outcome of one value.
func says(s string, refs ...ids.ObjectID) *direct.Outcome {
	return &direct.Outcome{Bytes: int64(len(s)), Value: &talk.Answer{Results: []wire.Result{
		{Kind: wire.ResultInline, Size: uint64(len(s)), Value: wire.Value{Data: []byte(s), Refs: refs}}}}}
}

func wantValue(t *testing.T, c *Client, h *Handle, want string) {
	t.Helper()
	if d, err := c.Get1(t.Context(), h); err != nil || string(d.Value.Data) != want {
		t.Errorf("the call came to %q, %v; want %q", d.Value.Data, err, want)
	}
}

// Of a call that goes straight the owner hears nothing, from its begin to its end.
func TestACallGoesStraight(t *testing.T) {
	a := newHost(t, func(s *wire.TaskSpec) *direct.Outcome { return says(s.ID.String()) })
	for range 3 {
		spec, hs := a.call(plain)
		wantValue(t, a.c, hs[0], spec.ID.String())
		hs[0].Release()
		if a.c.Cancel(wire.Cancel{Task: spec.ID}) != nil {
			t.Error("a call that has ended is not cancelled in vain")
		}
	}
	_, _ = a.call(&wire.TaskOptions{Func: "f"}) // a tell
	a.until("the way is asked for", func() bool { return len(saw[*wire.AskWay](a)) == 1 })
	a.c.Flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(saw[*wire.AskWay](a)) != 1 || a.count(wire.KindSubmit) != 1 || a.count(wire.KindGet) != 0 || a.count(wire.KindRelease) != 0 {
		t.Errorf("the owner was told %v", a.log)
	}
	if n := a.c.Handles(); n != 1 {
		t.Errorf("%d handles are left, want the actor's", n)
	}
}

// A reference that is passed on makes the owner know of the call, before its end or after.
func TestAReferenceIsPassedOn(t *testing.T) {
	run := make(chan struct{}, 2)
	began := make(chan struct{}, 2)
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { began <- struct{}{}; <-run; return says("it") })
	first, early := a.call(plain)
	<-began
	early[0].Passed()
	early[0].Passed()
	run <- struct{}{}
	wantValue(t, a.c, early[0], "it")
	a.until("the outcome is reported", func() bool { return len(saw[*wire.Adopt](a)) == 2 })
	run <- struct{}{}
	second, late := a.call(plain)
	wantValue(t, a.c, late[0], "it")
	late[0].Passed()
	a.until("both are adopted", func() bool { return len(saw[*wire.Adopt](a)) == 3 })
	a.mu.Lock()
	adopted := saw[*wire.Adopt](a)
	a.mu.Unlock()
	if adopted[0].Spec != first || adopted[0].Outcome != nil || adopted[0].Channel != 1 || adopted[0].No != 1 ||
		adopted[1].Spec != first || adopted[1].Outcome == nil || adopted[2].Spec != second || adopted[2].Outcome == nil || len(adopted[2].Outcome.Results) != 1 {
		t.Errorf("the owner was told %+v", adopted)
	}
	for _, h := range []*Handle{early[0], late[0]} {
		h.Release()
	}
	a.c.Flush()
	a.until("what the owner knows is released", func() bool { return !a.held[early[0].id] && !a.held[late[0].id] })
}

// What values have references to is held as long as needed: of arguments until the end of the call, of results as long as these.
func TestReferencesInCallsAreHeld(t *testing.T) {
	run := make(chan struct{}, 1)
	var gives ids.ObjectID
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { <-run; return says("it", gives) })
	arg, err := a.c.Put(t.Context(), wire.Value{Data: []byte("x")})
	if err != nil {
		t.Fatal(err)
	}
	gives = ids.RootTask(7, 1).Put(77)
	a.mu.Lock()
	a.objects[gives] = wire.Result{Kind: wire.ResultInline}
	a.mu.Unlock()
	_, hs := a.call(plain, func(s *wire.TaskSpec) { s.Args = []wire.Arg{{Value: wire.Value{Refs: []ids.ObjectID{arg.id}}}} })
	arg.Release()
	a.c.Flush()
	held := func(id ids.ObjectID) bool { a.mu.Lock(); defer a.mu.Unlock(); return a.held[id] }
	a.until("the way is asked for", func() bool { return len(saw[*wire.AskWay](a)) == 1 })
	if !held(arg.id) {
		t.Error("the argument was released under the call")
	}
	run <- struct{}{}
	wantValue(t, a.c, hs[0], "it")
	a.until("the argument is released after the call", func() bool { return !a.held[arg.id] })
	if !held(gives) {
		t.Error("nobody holds what the result refers to")
	}
	hs[0].Release()
	a.until("what the result refers to is released with it", func() bool { return !a.held[gives] })
}

// A stream goes in its place among the calls. The owner is told of it before it is sent and before its items are asked for, and of its end when it has ended.
func TestAStreamGoesStraight(t *testing.T) {
	run := make(chan struct{})
	var ran []ids.TaskID
	a := newHost(t, func(s *wire.TaskSpec) *direct.Outcome {
		<-run
		ran = append(ran, s.ID)
		if s.Opts.NumReturns == wire.Streaming {
			return &direct.Outcome{Value: &talk.Answer{Items: 3}}
		}
		return says(s.ID.String())
	})
	one, _ := a.call(plain)
	two, _ := a.call(&wire.TaskOptions{Func: "f", NumReturns: wire.Streaming}, func(s *wire.TaskSpec) { a.c.Reads(s.ID) })
	three, h3 := a.call(plain)
	item := make(chan error)
	go func() {
		_, _, err := a.c.Next(t.Context(), two.ID, 0)
		item <- err
	}()
	a.until("an item is asked for", func() bool { return len(saw[*wire.StreamNext](a)) == 1 })
	for range 3 {
		run <- struct{}{}
	}
	var told []*wire.Adopt
	a.until("its end is told", func() bool {
		told = saw[*wire.Adopt](a)
		return len(told) > 0 && told[len(told)-1].Outcome != nil
	})
	a.mu.Lock()
	first := slices.IndexFunc(a.log, func(m wire.Msg) bool { ad, is := m.(*wire.Adopt); return is && ad.Spec.ID == two.ID })
	asked := slices.IndexFunc(a.log, func(m wire.Msg) bool { _, is := m.(*wire.StreamNext); return is })
	submits := len(saw[*wire.Submit](a)) - 1 // but for the actor's
	a.mu.Unlock()
	if asked < first {
		t.Error("an item was asked for before the owner knew of the stream")
	}
	if submits > 0 {
		t.Errorf("%d calls went by the owner", submits)
	}
	for _, ad := range told {
		if ad.Spec.ID != two.ID || (ad.Channel == 0 || ad.No != 2) && ad.Outcome == nil && ad != told[0] {
			t.Errorf("the owner hears of %v on channel %d as number %d", ad.Spec.ID, ad.Channel, ad.No)
		}
	}
	if n := told[len(told)-1].Outcome.Items; n != 3 {
		t.Errorf("it is told that there were %d items", n)
	}
	a.emit(two.ID, 0, wire.Result{})
	if err := <-item; err != nil {
		t.Error(err)
	}
	wantValue(t, a.c, h3[0], three.ID.String())
	if want := []ids.TaskID{one.ID, two.ID, three.ID}; !slices.Equal(ran, want) {
		t.Errorf("%v ran, want %v", ran, want)
	}
}

// Where there is no channel a stream is submitted, in its place, and calls behind it go when it has ended.
func TestAStreamGoesByTheOwner(t *testing.T) {
	a := newHost(t, nil)
	a.way = wire.Way{Actor: a.actor, ByOwner: true}
	two, _ := a.call(&wire.TaskOptions{Func: "f", NumReturns: wire.Streaming})
	a.until("it is submitted", func() bool { return len(saw[*wire.Submit](a)) == 2 })
	end := ids.Derive(two.ID, uint64(wire.EndOfCall)).Return(0)
	a.until("its end is asked for", func() bool { return len(a.subs[end]) > 0 })
	a.resolveInline(end, "")
	testkit.Eventually(t, "what was submitted is released", func() bool {
		a.c.Flush()
		a.mu.Lock()
		defer a.mu.Unlock()
		return !a.held[end]
	})
}

// Where there is no channel all calls are tasks; where the actor is dead they fail.
func TestThereIsNoChannel(t *testing.T) {
	a := newHost(t, nil)
	a.way = wire.Way{Actor: a.actor, ByOwner: true}
	spec, hs := a.call(plain)
	a.until("it is submitted", func() bool { return len(saw[*wire.Submit](a)) == 2 })
	a.resolveInline(hs[0].id, "by the owner")
	wantValue(t, a.c, hs[0], "by the owner")
	if spec.Seq != 1 {
		t.Errorf("its number is %d", spec.Seq)
	}
	b := newHost(t, nil)
	b.way = wire.Way{Actor: b.actor, Dead: true, Err: errs.New(errs.CodeActorDied, "it is dead")}
	_, hs = b.call(plain)
	if _, err := b.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrActorDied) {
		t.Errorf("a call of a dead actor gives %v", err)
	}
	c := newHost(t, nil) // its instance ends before the client finds it
	c.boxes.Remove(c.box)
	_, hs = c.call(plain)
	if _, err := c.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrActorDied) {
		t.Errorf("a call of an actor that has just died gives %v", err)
	}
}

// A call is cancelled where it is, and ends at its deadline.
func TestACallThatGoesStraightEndsEarly(t *testing.T) {
	run := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { <-run; return says("it") })
	defer close(run)
	_, runs := a.call(plain)
	second, waits := a.call(plain)
	if err := a.c.Cancel(wire.Cancel{Task: second.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Get1(t.Context(), waits[0]); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("a call that was cancelled in its queue gives %v", err)
	}
	_, late := a.call(plain, func(s *wire.TaskSpec) { s.Deadline = a.c.At(time.Now().Add(20 * time.Millisecond)) })
	if _, err := a.c.Get1(t.Context(), late[0]); !errors.Is(err, errs.ErrDeadline) {
		t.Errorf("a call past its deadline gives %v", err)
	}
	if err := a.c.Cancel(wire.Cancel{Task: runs[0].id.Task, Force: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Get1(t.Context(), runs[0]); !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("a call that was cancelled by force gives %v", err)
	}
}

// A result that lies in the store is fetched once somebody wants its bytes.
func TestAStoredResultIsFetched(t *testing.T) {
	a := newHost(t, nil)
	sealed := make(chan struct{})
	a.run = func(_ *wire.TaskSpec) *direct.Outcome {
		<-sealed
		return &direct.Outcome{Value: &talk.Answer{Results: []wire.Result{{Kind: wire.ResultStored, Size: 5}}}}
	}
	_, hs := a.call(plain)
	hs[0].Passed() // as the actor's process does before it asks for room
	got := make(chan error)
	go func() {
		d, err := a.c.Get1(t.Context(), hs[0])
		if err == nil && string(d.Value.Data) != "large" {
			err = errors.New("it came to " + string(d.Value.Data))
		}
		d.Release()
		got <- err
	}()
	a.resolveStored(hs[0].id, "large")
	close(sealed)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// An owner that was made anew is told which channels there are, and what is adopted; calls under way go on.
func TestCallsSurviveTheOwner(t *testing.T) {
	began, run := make(chan struct{}), make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { began <- struct{}{}; <-run; return says("it") })
	_, runs := a.call(plain)
	<-began
	adopted, waits := a.call(plain)
	waits[0].Passed()
	a.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 2}})
	a.until("what it holds is told", func() bool { return len(saw[*wire.Holdings](a)) == 1 })
	a.mu.Lock()
	linked, told := saw[*wire.Linked](a), saw[*wire.Adopt](a)
	if len(linked) != 1 || *linked[0] != (wire.Linked{Actor: a.actor, Instance: 9, Channel: 1}) {
		t.Errorf("of channels it is told %+v", linked)
	}
	if len(told) != 2 || told[1].Spec != adopted || told[1].No != 2 {
		t.Errorf("of calls it is told %+v", told)
	}
	if held := saw[*wire.Holdings](a)[0].Handles; slices.Contains(held, runs[0].id) || !slices.Contains(held, waits[0].id) {
		t.Errorf("of objects it is told %v", held)
	}
	a.mu.Unlock()
	close(run)
	<-began
	wantValue(t, a.c, runs[0], "it")
	wantValue(t, a.c, waits[0], "it")
}

// An actor is asked to stop after all that it was told before.
func TestAStopComesAfterWhatWasSaid(t *testing.T) {
	ran := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { close(ran); return says("it") })
	way := a.way
	a.mu.Lock()
	a.way = wire.Way{} // of no actor: the way is yet to come
	a.mu.Unlock()
	_, _ = a.call(&wire.TaskOptions{Func: "f"})
	a.until("the way is asked for", func() bool { return len(saw[*wire.AskWay](a)) == 1 })
	if err := a.c.AskStop(a.actor); err != nil {
		t.Fatal(err)
	}
	a.c.Flush()
	a.mu.Lock()
	if a.count(wire.KindKillActor) != 0 {
		t.Error("the stop overtakes a call")
	}
	a.mu.Unlock()
	a.c.Deliver([]wire.Msg{&way})
	<-ran
	a.until("it is asked to stop", func() bool { return a.count(wire.KindKillActor) == 1 })
	if err := a.c.AskStop(a.actor); err != nil {
		t.Fatal(err)
	}
	a.until("it is asked to again, at once", func() bool { return a.count(wire.KindKillActor) == 2 })
}

// A client that is closed closes its channels; what runs runs on.
func TestACloseClosesChannels(t *testing.T) {
	run, ran := make(chan struct{}), make(chan struct{})
	began := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome { close(began); <-run; close(ran); return says("it") })
	_, hs := a.call(plain)
	<-began
	if err := a.c.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := a.c.Get1(t.Context(), hs[0]); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("a closed client gives %v", err)
	}
	close(run)
	<-ran
}

// A call through the client into a mailbox and back: what the codec, and the method, do not take.
func BenchmarkStraightAsk(b *testing.B) {
	o := says("it")
	a := newHost(b, func(*wire.TaskSpec) *direct.Outcome { return o })
	b.ReportAllocs()
	for b.Loop() {
		spec := &wire.TaskSpec{ID: a.c.Root().NextTask(), Parent: a.c.Root().Task, Kind: wire.TaskActorCall, Actor: a.actor, Opts: plain}
		hs, err := a.c.Submit(b.Context(), spec)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := a.c.Get1(b.Context(), hs[0]); err != nil {
			b.Fatal(err)
		}
		hs[0].Release()
	}
}

// Who still has the handle of a call that was released does not keep what the call came to.
func TestAHandleKeepsNoCall(t *testing.T) {
	freed := make(chan struct{})
	a := newHost(t, func(*wire.TaskSpec) *direct.Outcome {
		o := says("it")
		keep := new([64]byte)
		o.Value.(*talk.Answer).Keep = keep
		runtime.AddCleanup(keep, func(int) { close(freed) }, 0)
		return o
	})
	_, hs := a.call(plain)
	wantValue(t, a.c, hs[0], "it")
	hs[0].Release()
	testkit.Eventually(t, "what the call needed is freed", func() bool {
		a.c.straight.sweep() // which tells the actor's process that the answer was taken
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	})
	runtime.KeepAlive(hs)
}

// The owner is told of a call whose result nobody holds any more, as before one is stored: it keeps no handle of it.
func TestAnAdoptedCallWithoutAHandleIsLetGo(t *testing.T) {
	goOn := make(chan struct{})
	var m talk.Straight
	a := newHost(t, nil)
	a.run = func(*wire.TaskSpec) *direct.Outcome { <-goOn; m.Announce(); return says("it") }
	spec, hs := a.call(plain)
	m = hs[0].call.Load()
	hs[0].Release()
	close(goOn)
	a.until("its end is told", func() bool {
		m := saw[*wire.Adopt](a)
		return len(m) > 0 && m[len(m)-1].Outcome != nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[spec.ID.Return(0)] {
		t.Error("a handle is left")
	}
}
