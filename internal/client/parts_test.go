package client

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lint/parts"
	"mobula/wire"
)

// Parts refer only to the parts below them; they call those above through interfaces of their own.
func TestPartsKnowOnlyThoseBelow(t *testing.T) { parts.InOrder(t, reflect.TypeFor[Client](), 16) }

// above stands for the parts above the one under test, and records their calls.
type above struct {
	flushed int
	gone    chan error
}

func (a *above) Flush()                           { a.flushed++ }
func (a *above) Disconnected(_ Port, cause error) { a.gone <- cause }

// keeper is a port that records what is sent, until it fails.
type keeper struct {
	sent  []wire.Msg
	fails error
}

func (k *keeper) Send(msgs ...wire.Msg) error {
	if k.fails != nil {
		return k.fails
	}
	k.sent = append(k.sent, msgs...)
	return nil
}

func (k *keeper) Close() error { return nil }

func baseAlone() *base {
	b := &base{cfg: Config{RequestTimeout: time.Minute}, log: slog.New(slog.DiscardHandler), dead: make(chan struct{})}
	b.life, b.end = context.WithCancel(context.Background())
	return b
}

// outboxAlone makes only the outbox and the parts below it.
func outboxAlone() (*outbox, *keeper, *above) {
	up, port := &above{gone: make(chan error, 1)}, &keeper{}
	hs := &handles{}
	hs.cacheMax = 1 << 20
	o := &outbox{base: baseAlone(), handles: hs, credit: &credit{}, up: up, port: port}
	hs.releaser.up = o
	return o, port, up
}

func object(n uint64) ids.ObjectID { return ids.RootTask(7, n).Return(0) }

// A handle that is used again before its release was sent lives on, and nothing is sent.
func TestHandlesComeBackBeforeTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes, so the timer does not flush
		o, port, _ := outboxAlone()
		h := o.handles.Promised(object(1))
		h.Release()
		again := o.handles.Promised(object(1))
		o.Flush()
		if again != h || len(port.sent) != 0 || o.handles.Handles() != 1 {
			t.Fatalf("taken again: the same %v, %v sent, %d handles", again == h, port.sent, o.handles.Handles())
		}
		again.Release()
		o.Flush()
		if len(port.sent) != 1 {
			t.Fatalf("after the last release %v was sent", port.sent)
		}
		if r, ok := port.sent[0].(*wire.Release); !ok || len(r.IDs) != 1 || r.IDs[0] != object(1) {
			t.Errorf("after the last release %v was sent", port.sent[0])
		}
		if o.handles.Handles() != 0 {
			t.Errorf("%d handles are left", o.handles.Handles())
		}
		o.handles.releaser.close()
	})
}

// Releases are collected, and a full batch is sent at once.
func TestHandlesAskForTheFlushOfAFullBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes, so the timer does not ask
		up := &above{}
		hs := &handles{}
		hs.releaser.up = up
		for i := range uint64(flushAt) {
			if up.flushed != 0 {
				t.Fatalf("the flush was asked for after %d releases", i)
			}
			hs.Promised(object(i + 1)).Release()
		}
		synctest.Wait()
		if up.flushed != 1 {
			t.Errorf("the flush was asked for %d times", up.flushed)
		}
		hs.releaser.close()
	})
}

// stuck stands for an outbox whose node reads nothing.
type stuck struct{ until chan struct{} }

func (s stuck) Flush() { <-s.until }

// Cleanups of the runtime release handles, one after the other: one that waited would hold up all others of the process.
func TestReleasesDoNotWaitForTheNode(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		up := stuck{make(chan struct{})}
		hs := &handles{}
		hs.releaser.up = up
		for i := range uint64(2 * flushAt) {
			hs.Promised(object(i + 1)).Release() // a deadlock if it waits
		}
		close(up.until)
		synctest.Wait()
		hs.releaser.close()
	})
}

// While the connection is down the outbox keeps the messages that a reconnect does not repeat anyway.
func TestOutboxKeepsWhatIsNotToldAgain(t *testing.T) {
	o, port, up := outboxAlone()
	o.replay = true
	why := errors.New("broken")
	port.fails = why
	if err := o.KillActor(ids.ActorID{}, false); err != nil {
		t.Fatal(err)
	}
	if got := <-up.gone; got != why {
		t.Fatalf("told that the connection is gone: %v", got)
	}
	if err := o.Send(&wire.Get{ID: object(1)}, &wire.Cancel{}, &wire.PutValue{ID: object(2)}); err != nil {
		t.Fatal(err)
	}
	if len(o.later) != 2 || o.later[0].Kind() != wire.KindKillActor || o.later[1].Kind() != wire.KindCancel {
		t.Errorf("kept for later: %v", o.later)
	}
	if again := o.unacked.list(); len(again) != 1 || again[0].Kind() != wire.KindPutValue {
		t.Errorf("in the replay queue: %v", again)
	}
}

func TestOutboxSaysThatTheConnectionIsGone(t *testing.T) {
	o, port, up := outboxAlone()
	port.fails = errors.New("broken")
	if err := o.KillActor(ids.ActorID{}, false); !errors.Is(err, errs.ErrOwnerDied) {
		t.Errorf("the message that found out: %v", err)
	}
	<-up.gone
	if err := o.Send(&wire.Cancel{}); !errors.Is(err, errs.ErrOwnerDied) {
		t.Errorf("the next one: %v", err)
	}
}

// A sender without credit waits until some comes, its context ends, or the client ends.
func TestCreditIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &credit{base: baseAlone()}
		c.add(10)
		if err := c.admit(t.Context(), &TaskContext{}, 15); err != nil { // larger than what is left, and the first
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		admitted, given, ended := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go func() { admitted <- c.admit(t.Context(), &TaskContext{}, 1) }()
		go func() { given <- c.admit(ctx, &TaskContext{}, 1) }()
		synctest.Wait()
		if len(admitted)+len(given) != 0 {
			t.Fatal("somebody was let in without credit")
		}
		why := errors.New("given up")
		cancel(why)
		if err := <-given; err != why {
			t.Errorf("after its context ended: %v", err)
		}
		c.add(10)
		if err := <-admitted; err != nil {
			t.Errorf("after credit came: %v", err)
		}
		c.left.Store(0)
		go func() { ended <- c.admit(t.Context(), &TaskContext{}, 1) }()
		synctest.Wait()
		c.cause = errs.ErrShutdown
		close(c.dead)
		if err := <-ended; err != errs.ErrShutdown {
			t.Errorf("after the client ended: %v", err)
		}
	})
}

// A request keeps its turn until it is answered, even if nobody waits for it any more.
func TestRequestsKeepTheirTurnUntilTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, port, _ := outboxAlone()
		rs := &requests{base: o.base, outbox: o, turns: freeTurns()}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, wire.RequestsAtOnce)
		for range wire.RequestsAtOnce {
			go func() { _, err := rs.Request(ctx, "slow", nil); gone <- err }()
		}
		synctest.Wait()
		cancel()
		for range wire.RequestsAtOnce {
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Fatalf("a request whose context ended: %v", err)
			}
		}
		body := make(chan string, 1)
		go func() { b, _ := rs.Request(t.Context(), "next", nil); body <- string(b) }()
		synctest.Wait()
		if n := len(port.sent); n != wire.RequestsAtOnce {
			t.Fatalf("%d were sent, at most %d may be without an answer", n, wire.RequestsAtOnce)
		}
		rs.replied(&wire.Reply{Req: port.sent[0].(*wire.Request).Req})
		synctest.Wait()
		last := port.sent[len(port.sent)-1].(*wire.Request)
		if last.Method != "next" {
			t.Fatal("an answer frees no turn")
		}
		rs.replied(&wire.Reply{Req: last.Req, Body: []byte("answer")})
		if got := <-body; got != "answer" {
			t.Errorf("the request was answered with %q", got)
		}
	})
}
