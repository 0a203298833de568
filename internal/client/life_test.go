package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// waiting starts one of each waiting operation and gives their errors.
func (f *fakeNode) waiting(t *testing.T) chan error {
	f.full, f.mute = true, true
	_, hs := f.submit(plain)
	out := make(chan error, 5)
	go func() { _, err := f.c.Get1(t.Context(), hs[0]); out <- err }()
	go func() { _, _, err := f.c.Wait(t.Context(), hs, 1); out <- err }()
	go func() { _, _, err := f.c.Next(t.Context(), hs[0].ID().Task, 0); out <- err }()
	go func() { _, err := f.c.Create(t.Context(), f.c.Root().NextPut(), 10); out <- err }()
	go func() { _, err := f.c.Request(t.Context(), "m", nil); out <- err }()
	f.until("all wait", func() bool {
		return f.count(wire.KindGet) >= 1 && len(f.asks) == 1 && len(f.creates) == 1 && f.count(wire.KindRequest) == 1
	})
	return out
}

func TestCloseFailsWhatIsPending(t *testing.T) {
	f := newFake(t, Config{})
	errc := f.waiting(t)
	if err := f.c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := <-errc; !errors.Is(err, errs.ErrShutdown) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.c.Put(t.Context(), wire.Value{}); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("put after close: %v", err)
	}
	if err := f.c.Close(t.Context()); err != nil {
		t.Errorf("closing again: %v", err)
	}
}

func TestDeadConnectionFailsWhatIsPending(t *testing.T) {
	f := newFake(t, Config{})
	errc := f.waiting(t)
	f.c.Disconnected(nil, errs.New(errs.CodeDisconnected, "reset"))
	for range 5 {
		if err := <-errc; !errors.Is(err, errs.ErrDisconnected) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := f.c.Submit(t.Context(), &wire.TaskSpec{Opts: plain}); !errors.Is(err, errs.ErrDisconnected) {
		t.Errorf("submit afterwards: %v", err)
	}
}

func TestByeGivesTheNodesReason(t *testing.T) {
	f := newFake(t, Config{})
	f.c.Dispatch(&wire.Bye{Err: errs.New(errs.CodePermission, "go away")})
	if _, err := f.c.Put(t.Context(), wire.Value{}); !errors.Is(err, errs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}

func TestReconnectSaysEverythingAgain(t *testing.T) {
	second := bareFake(t)
	joined := make(chan error, 1)
	f := newFake(t, Config{Reconnect: func(_ context.Context, cause error) (Session, error) {
		joined <- cause
		go second.serve()
		return Session{Port: second, Memory: second, Welcome: &wire.Welcome{}}, nil
	}})
	second.c = f.c
	pinned, err := f.c.Put(t.Context(), wire.Value{Data: make([]byte, 2000)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.c.Get1(t.Context(), pinned)
	if err != nil {
		t.Fatal(err)
	}
	small, err := f.c.Put(t.Context(), wire.Value{Data: []byte("small")})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := f.c.Put(t.Context(), wire.Value{})
	if err != nil {
		t.Fatal(err)
	}
	gone.Release()
	read, ended, left := f.c.Root().NextTask(), f.c.Root().NextTask(), f.c.Root().NextTask() // streams
	f.c.Reads(read)
	f.c.Reads(ended)
	f.c.Unread(ended)
	f.c.Reads(left)
	f.c.Leave(left)
	errc := f.waiting(t)
	f.until("the releases", func() bool { return f.count(wire.KindRelease) == 2 })
	f.mu.Lock()
	f.broken = errors.New("broken pipe")
	close(f.in)
	f.mu.Unlock()
	spec, _ := f.submit(plain) // notices
	if cause := <-joined; cause == nil {
		t.Error("no cause was given")
	}
	if err := f.c.Cancel(wire.Cancel{Task: spec.ID}); err != nil {
		t.Fatal(err)
	}
	second.until("the replay", func() bool {
		return second.count(wire.KindHoldings) == 2 && second.count(wire.KindSubmit) == 2 && second.count(wire.KindPutValue) == 2 &&
			second.count(wire.KindCreate) >= 1 && second.count(wire.KindRequest) == 1 && second.count(wire.KindCancel) == 1
	})
	second.mu.Lock()
	var waits ids.ObjectID
	for _, m := range second.log {
		if h, ok := m.(*wire.Holdings); ok && h.Component == wire.ComponentOwner {
			if len(h.Handles) != 5 || !slices.Contains(h.Handles, read.Stream()) || len(h.Gets) < 1 || len(h.Streams) != 1 {
				t.Errorf("the owner is told %+v", h)
			}
			waits = h.Gets[0].ID
		} else if ok && (len(h.Pins) != 1 || h.Pins[0] != (wire.Unpin{ID: pinned.ID(), N: 1})) {
			t.Errorf("the store is told %+v", h)
		}
	}
	second.held[pinned.ID()], second.held[small.ID()], second.pins[pinned.ID()] = true, true, 1
	second.mu.Unlock()
	f.c.Deliver([]wire.Msg{
		&wire.Resolved{ID: waits, Fetch: true, Result: wire.Result{Kind: wire.ResultInline}},
		&wire.StreamItem{Task: waits.Task},
	})
	second.mu.Lock()
	var answers []wire.Msg
	for _, m := range second.log {
		if q, ok := m.(*wire.Request); ok {
			answers = append(answers, &wire.Reply{Req: q.Req})
		}
	}
	second.mu.Unlock()
	f.c.Deliver(answers)
	for range 5 { // what waited has its answer, from the second node
		if err := <-errc; err != nil {
			t.Errorf("got %v", err)
		}
	}
	d.Release()
	second.until("the unpin", func() bool { return len(second.pins) == 0 })
}

// A restarted node asks at once what its clients hold, and takes clients that do not answer for dead. The end of
// the old connection must not end the new one.
func TestTheNewConnectionAnswersWhatItIsAskedFirst(t *testing.T) {
	second := bareFake(t)
	first := make(chan struct{})
	f := newFake(t, Config{})
	f.c.cfg.Reconnect = func(context.Context, error) (Session, error) {
		go second.serve()
		return Session{Port: second, Memory: second, Welcome: &wire.Welcome{}, Serve: func() {
			f.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 77}})
			f.c.Disconnected(f, errors.New("end of file"))
			close(first)
		}}, nil
	}
	second.c = f.c
	f.c.Disconnected(f, errors.New("reset"))
	<-first
	second.until("the answer", func() bool {
		return slices.ContainsFunc(second.log, func(m wire.Msg) bool {
			h, ok := m.(*wire.Holdings)
			return ok && h.Component == wire.ComponentOwner && h.Epoch == 77
		})
	})
	f.c.outbox.mu.Lock()
	defer f.c.outbox.mu.Unlock()
	if f.c.outbox.port != Port(second) {
		t.Errorf("the client sends to %v", f.c.outbox.port)
	}
}

// Messages sent without a connection go over the first connection that lasts.
func TestWhatWasSaidMeanwhileOutlivesAConnectionThatBreaksAtOnce(t *testing.T) {
	broken, good := bareFake(t), bareFake(t)
	broken.broken = errors.New("broken pipe")
	goOn := make(chan struct{})
	sessions := make(chan *fakeNode, 2)
	sessions <- broken
	sessions <- good
	f := newFake(t, Config{Reconnect: func(context.Context, error) (Session, error) {
		<-goOn
		next := <-sessions
		return Session{Port: next, Memory: next, Welcome: &wire.Welcome{}}, nil
	}})
	good.c = f.c
	go good.serve()
	f.c.Disconnected(f, errors.New("reset"))
	if err := f.c.Cancel(wire.Cancel{Task: f.c.Root().NextTask()}); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	good.until("the cancel", func() bool { return good.count(wire.KindCancel) == 1 })
}

func TestReconnectThatFailsIsTheEnd(t *testing.T) {
	f := newFake(t, Config{Reconnect: func(context.Context, error) (Session, error) {
		return Session{}, errs.New(errs.CodeNoNode, "no socket")
	}})
	errc := f.waiting(t)
	f.c.Disconnected(nil, errors.New("reset"))
	for range 5 {
		if err := <-errc; !errors.Is(err, errs.ErrNoNode) {
			t.Errorf("got %v", err)
		}
	}
}

func TestReplayQueueIsBounded(t *testing.T) {
	var u unacked
	var c credit // nothing has been granted
	for i := range 3 * replayMessages {
		u.add(&wire.PutValue{ID: ids.TaskID{}.Put(uint32(i))}, &c)
	}
	l := u.list()
	if len(l) != replayMessages || l[0].(*wire.PutValue).ID.Index&^ids.PutBit != 2*replayMessages {
		t.Errorf("%d messages from %v on", len(l), l[0])
	}
	for range 10 {
		u.add(&wire.PutValue{Value: wire.Value{Data: make([]byte, replayBytes/4)}}, &c)
	}
	if u.bytes > replayBytes || u.n > 4 {
		t.Errorf("%d messages of %d bytes", u.n, u.bytes)
	}
}

// What the node may not have handled stays in the queue, however many messages that is, and goes once they are more than the queue has room for.
func TestTheReplayQueueKeepsWhatIsNotHandled(t *testing.T) {
	var u unacked
	c := credit{base: &base{}}
	c.add(32 << 20)
	put := func(i int) {
		m := &wire.PutValue{ID: ids.TaskID{}.Put(uint32(i))}
		if !c.take(wire.Cost(m)) {
			t.Fatalf("put %d is one too many", i)
		}
		u.add(m, &c)
	}
	const many = 3 * replayMessages
	u.add(&wire.Seal{}, &c) // older than all: it costs nothing, so nothing tells whether it was handled
	for i := range many {
		put(i)
	}
	if u.n != many+1 {
		t.Fatalf("of %d messages %d are left", many+1, u.n)
	}
	one := wire.Cost(&wire.PutValue{})
	c.add(one * (many - 10))
	put(many)
	if l := u.list(); len(l) != replayMessages || l[0].(*wire.PutValue).ID.Index&^ids.PutBit != many-replayMessages+1 {
		t.Errorf("%d messages from %v on", len(l), l[0])
	}
	c.add(one * 11)
	for i := range replayMessages {
		c.add(one) // each is handled before the next
		put(many + 1 + i)
	}
	if u.n != replayMessages {
		t.Errorf("%d messages are kept", u.n)
	}
}

// A node that has started again gets the replay queue, and its owner settles when it has handled that: until then others wait.
func TestReplayedMessagesCountAsUnderWay(t *testing.T) {
	c := credit{base: &base{}}
	c.owe(10) // before any grant there is no bound
	if c.on.Load() || !c.take(1) {
		t.Fatal("there is a bound")
	}
	c.add(100)
	if !c.take(90) {
		t.Fatal("there is no credit")
	}
	c.sent.Add(90)
	c.owe(90)
	c.add(10) // of the life before
	c.declares()
	c.add(10)
	if c.take(1) || c.unhandled() != 90 {
		t.Errorf("%d are left, %d under way", c.left.Load(), c.unhandled())
	}
	c.add(0)
	if left := c.left.Load(); left != 100 || c.unhandled() != 0 {
		t.Errorf("%d are left, %d under way", left, c.unhandled())
	}
	c.take(30)
	c.sent.Add(30)
	c.add(0) // nobody has asked
	c.add(10)
	if left := c.left.Load(); left != 80 || c.unhandled() != 20 {
		t.Errorf("%d are left, %d under way", left, c.unhandled())
	}
}

func TestCollectIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Config{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 100 {
			f.c.Dispatch(&wire.Collect{})
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n != 1 {
			t.Errorf("%d collections at once", n)
		}
		time.Sleep(2 * collectEvery)
		f.c.Dispatch(&wire.Collect{})
		synctest.Wait()
		runtime.ReadMemStats(&after)
		if n := after.NumForcedGC - before.NumForcedGC; n != 2 {
			t.Errorf("%d collections after a while", n)
		}
	})
}

func TestUnknownMessagesAreIgnored(t *testing.T) {
	f := newFake(t, Config{})
	f.c.Deliver([]wire.Msg{&wire.Drain{}, &wire.Reply{Req: 99}, &wire.Created{Req: 99}, &wire.StreamItem{}})
	if f.c.Err() != nil {
		t.Error(fmt.Errorf("the client died: %w", f.c.Err()))
	}
}

// A request of a client that has lost its node waits, whatever its timeout, until the node is back or known to be gone.
func TestARequestWaitsForALostNode(t *testing.T) {
	for name, gone := range map[string]bool{"that is back": false, "that is gone": true} {
		t.Run(name, func(t *testing.T) {
			second := bareFake(t)
			second.mute = true
			goOn := make(chan struct{})
			f := newFake(t, Config{RequestTimeout: time.Millisecond, Reconnect: func(context.Context, error) (Session, error) {
				<-goOn
				if gone {
					return Session{}, errors.New("nobody is there")
				}
				go second.serve()
				return Session{Port: second, Memory: second, Welcome: &wire.Welcome{}}, nil
			}})
			second.c = f.c
			f.c.Disconnected(f, errors.New("reset"))
			out := make(chan error, 1)
			go func() { _, err := f.c.Request(t.Context(), "m", nil); out <- err }()
			select {
			case err := <-out:
				t.Errorf("it is given up while the node may come back: %v", err)
			case <-time.After(30 * time.Millisecond):
			}
			close(goOn)
			want := errs.ErrOwnerDied
			if !gone {
				want = errs.ErrGetTimeout // this one is back and mute
			}
			if err := <-out; !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
}

// However many requests are made at once, the node gets a bounded number; the others wait for their turn. No turn is lost when a waiter
// gives up, whether the node answers or another node comes.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := bareFake(t)
		f := newFake(t, Config{Reconnect: func(context.Context, error) (Session, error) {
			go second.serve()
			return Session{Port: second, Memory: second, Welcome: &wire.Welcome{}}, nil
		}})
		second.c = f.c
		f.mute = true
		asked := func(f *fakeNode) (n []uint64) {
			synctest.Wait()
			for _, m := range f.log {
				if q, ok := m.(*wire.Request); ok {
					n = append(n, q.Req)
				}
			}
			return n
		}
		ask := func(ctx context.Context, n int) <-chan error {
			out := make(chan error, n)
			for range n {
				go func() { _, err := f.c.Request(ctx, "m", nil); out <- err }()
			}
			return out
		}
		ctx, cancel := context.WithCancel(t.Context())
		all := ask(ctx, 3*wire.RequestsAtOnce)
		first := asked(f)
		if len(first) != wire.RequestsAtOnce {
			t.Errorf("%d are asked at once, want %d", len(first), wire.RequestsAtOnce)
		}
		cancel()
		for range cap(all) {
			if err := <-all; !errors.Is(err, context.Canceled) {
				t.Errorf("whose context has ended: %v", err)
			}
		}
		more := ask(t.Context(), 3*wire.RequestsAtOnce)
		for _, n := range first[:len(first)/2] { // half of the turns are given on by an answer
			f.c.Deliver([]wire.Msg{&wire.Reply{Req: n}})
		}
		if n := len(asked(f)); n != wire.RequestsAtOnce*3/2 {
			t.Errorf("%d were asked, want %d: as many more as were answered", n, wire.RequestsAtOnce*3/2)
		}
		f.c.Disconnected(f, errors.New("reset")) // and half by a node that is not asked what nobody waits for
		for range cap(more) {
			if err := <-more; err != nil {
				t.Error(err)
			}
		}
		if n := len(asked(second)); n != cap(more) {
			t.Errorf("the second node was asked %d times, want %d", n, cap(more))
		}
		if err := errors.Join(f.Close(), second.Close()); err != nil {
			t.Error(err)
		}
	})
}
