package client

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"mobula/internal/ids"
	"mobula/wire"
)

// life is one life of a node that handles nothing by itself. It keeps what comes.
type life struct {
	made  map[ids.ObjectID]int // by submits, as their first return, and by puts: how often
	order []wire.Kind
}

func (l *life) Send(msgs ...wire.Msg) error {
	for _, m := range msgs {
		l.order = append(l.order, m.Kind())
		switch m := m.(type) {
		case *wire.Submit:
			l.made[m.Spec.ID.Return(0)]++
		case *wire.PutValue:
			l.made[m.ID]++
		}
	}
	return nil
}

func (l *life) Close() error { return nil }

// lives is a node that is killed and comes back.
type lives struct {
	t   *testing.T
	c   *Client
	now *life
}

const lifeWindow = 32 << 20

func newLives(t *testing.T) *lives {
	n := &lives{t: t, now: &life{made: make(map[ids.ObjectID]int)}}
	n.c = New(Config{
		Port: n.now, Log: slog.New(slog.DiscardHandler), Welcome: &wire.Welcome{Client: 3, Job: 7, Root: ids.RootTask(7, 1), InlineMax: 1024},
		Reconnect: func(context.Context, error) (Session, error) {
			n.now = &life{made: make(map[ids.ObjectID]int)}
			return Session{Port: n.now}, nil
		},
	})
	n.c.Deliver([]wire.Msg{&wire.Credit{Bytes: lifeWindow}})
	return n
}

// killed ends the node's life; the next one asks the client what it holds.
func (n *lives) killed(epoch uint64) {
	n.c.Disconnected(nil, errors.New("killed"))
	synctest.Wait()
	n.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: epoch}})
	synctest.Wait()
}

func (n *lives) submit() ids.ObjectID {
	hs, err := n.c.Submit(n.t.Context(), &wire.TaskSpec{ID: n.c.Root().NextTask(), Opts: plain})
	if err != nil {
		n.t.Fatal(err)
	}
	return hs[0].ID()
}

// puts makes many objects in a goroutine, and gives what to receive from when all are made.
func (n *lives) puts(many int) chan []ids.ObjectID {
	out := make(chan []ids.ObjectID, 1)
	go func() {
		var made []ids.ObjectID
		for range many {
			h, err := n.c.Put(n.t.Context(), wire.Value{Data: []byte{1}})
			if err != nil {
				n.t.Error(err)
				break
			}
			made = append(made, h.ID())
		}
		out <- made
	}()
	synctest.Wait()
	return out
}

// knows checks that this life of the node was told of some objects.
func (n *lives) knows(what string, list ...ids.ObjectID) {
	n.t.Helper()
	lost := 0
	for _, id := range list {
		if n.now.made[id] == 0 {
			lost++
		}
	}
	if lost > 0 {
		n.t.Errorf("%s: of %d objects the node is not told of %d", what, len(list), lost)
	}
}

const manyPuts = replayMessages + replayMessages/8

// A node is killed before it has handled what it was sent again, while the program goes on: the next life is sent that too.
func TestWhatWasSentAgainIsKeptUntilItIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLives(t)
		first := n.submit()
		n.killed(1)
		puts := n.puts(manyPuts)
		n.killed(2)
		n.knows("after two kills", first)
		n.c.Deliver([]wire.Msg{&wire.Credit{}})
		made := <-puts
		n.knows("once the owner has settled", made...)
		n.killed(3) // of what came after the owner had settled it has handled nothing
		n.knows("after three kills", made...)
		n.c.Deliver([]wire.Msg{&wire.Credit{}})
		if n.c.credit.unhandled() != 0 || n.c.credit.left.Load() != lifeWindow {
			t.Errorf("all is handled, and %d bytes are under way, with credit for %d", n.c.credit.unhandled(), n.c.credit.left.Load())
		}
		if err := n.c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An owner is lost and rebuilt in a node that goes on, and the node is killed before the owner has gone on: nothing was handled.
func TestWhatALostOwnerHadNotHandledIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLives(t)
		made := <-n.puts(manyPuts)
		n.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 1}})
		last := <-n.puts(1)
		n.killed(2)
		n.knows("before the holdings", made...)
		n.knows("after them", last...)
		if err := n.c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What goes after the holdings is under way when the owner has settled; a submit that was kept back goes before them.
func TestTheHoldingsDivideWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newLives(t)
		n.submit()
		n.c.outbox.mu.Lock()
		n.c.outbox.cork.msgs = append(n.c.outbox.cork.msgs, &wire.Submit{Spec: &wire.TaskSpec{ID: n.c.Root().NextTask(), Opts: plain}})
		n.c.outbox.mu.Unlock()
		n.c.Deliver([]wire.Msg{&wire.Resync{Component: wire.ComponentOwner, Epoch: 1}})
		if k := n.now.order; len(k) != 3 || k[1] != wire.KindSubmit || k[2] != wire.KindHoldings {
			t.Fatalf("%v were sent", k)
		}
		after := wire.CostOfSpec(&wire.TaskSpec{})
		n.submit()
		n.c.Deliver([]wire.Msg{&wire.Credit{Bytes: lifeWindow}, &wire.Credit{}}) // of what came before them
		if got := n.c.credit.unhandled(); got != after {
			t.Errorf("%d bytes are under way, want %d", got, after)
		}
		if left := n.c.credit.left.Load(); left != lifeWindow-after {
			t.Errorf("there is credit for %d, want %d less than the window", left, after)
		}
		n.c.Deliver([]wire.Msg{&wire.Credit{Bytes: after}})
		if got := n.c.credit.unhandled(); got != 0 {
			t.Errorf("%d bytes are under way", got)
		}
		if err := n.c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// An owner that was lost as a driver joined has told it no window: the next one does, and no grant that is less is taken for it.
func TestTheNextOwnerTellsTheWindow(t *testing.T) {
	var c credit
	c.base = &base{}
	c.declares()
	c.add(lifeWindow)
	c.add(0)
	if left := c.left.Load(); !c.on.Load() || left != lifeWindow {
		t.Errorf("there is credit for %d, want %d", left, lifeWindow)
	}
}
