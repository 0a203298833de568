package conn

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

// token is a Waiter with a channel, as a client has it.
type token chan struct{}

func (k token) Woken() bool { return len(k) > 0 }

// talk is a process whose goroutines ask over one connection and wait for answers.
type talk struct {
	t    *testing.T
	l    lend.Lender
	far  *Conn
	near *Conn
	over chan error

	mu      sync.Mutex
	waiting map[ids.ObjectID]token // guarded by mu
	answers int                    // guarded by mu
	others  []string               // guarded by mu: the goroutines that handled anything but an answer
}

func newTalk(t *testing.T) *talk {
	twoProcessors(t)
	k := &talk{t: t, over: make(chan error, 1), waiting: map[ids.ObjectID]token{}}
	k.far, k.near = socketPair(t, Config{})
	go func() { // answers each Get
		_ = k.far.Serve(new(lend.Lender), func(batch []wire.Msg) error { // ends with the test
			var out []wire.Msg
			for _, m := range batch {
				if g, ok := m.(*wire.Get); ok {
					out = append(out, &wire.Resolved{ID: g.ID, Result: wire.Result{Kind: wire.ResultInline}})
				}
			}
			return k.far.TrySend(out...)
		})
	}()
	go func() { k.over <- k.near.Serve(&k.l, k.handle) }()
	return k
}

func (k *talk) handle(batch []wire.Msg) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range batch {
		r, ok := m.(*wire.Resolved)
		if !ok {
			k.others = append(k.others, goroutine())
			continue
		}
		k.answers++
		if w := k.waiting[r.ID]; w != nil {
			delete(k.waiting, r.ID)
			w <- struct{}{}
		}
	}
	return nil
}

// goroutine names the one that runs.
func goroutine() string {
	b := make([]byte, 64)
	b = b[:runtime.Stack(b, false)]
	return string(bytes.Fields(b)[1])
}

// ask asks and waits as a client does.
func (k *talk) ask(ctx context.Context, id ids.ObjectID) error {
	w := make(token, 1)
	k.mu.Lock()
	k.waiting[id] = w
	k.mu.Unlock()
	if err := k.near.Send(&wire.Get{ID: id}); err != nil {
		return err
	}
	return k.wait(ctx, w)
}

func (k *talk) wait(ctx context.Context, w token) error {
	if k.l.Read(ctx, w) {
		return nil
	}
	defer k.l.Woken()
	select {
	case <-w:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func objectID(n int) ids.ObjectID { return ids.RootTask(1, uint64(n)).Put(1) }

// lent asks until the place is lent, and somebody has used it.
func (k *talk) lent() *lend.Place {
	k.t.Helper()
	for i := range 1_000_000 {
		if err := k.ask(k.t.Context(), objectID(i)); err != nil {
			k.t.Fatal(err)
		}
		if p := k.l.Lent(); p != nil && p.Used() > 0 {
			return p
		}
	}
	k.t.Fatal("the reader never lent its place")
	return nil
}

func TestAWaiterReadsForItself(t *testing.T) {
	k := newTalk(t)
	p := k.lent()
	before, uses := k.answers, p.Used()
	for i := range 1000 {
		if err := k.ask(t.Context(), objectID(i)); err != nil {
			t.Fatal(err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.answers != before+1000 || p.Used() == uses {
		t.Errorf("%d answers of 1000 questions, %d of them read by who asked", k.answers-before, p.Used()-uses)
	}
}

func TestAPlaceThatNobodyTakesIsTheReadersAgain(t *testing.T) {
	k := newTalk(t)
	k.lent()
	before := k.answers
	if err := k.far.Send(&wire.Resolved{ID: objectID(1), Result: wire.Result{Kind: wire.ResultInline}}, &wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "what came while nobody waits is handled", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.answers == before+1 && len(k.others) == 1
	})
}

// Whoever waits may hold a lock that the handler of another message needs.
func TestABorrowerHandlesAnswersOnly(t *testing.T) {
	k := newTalk(t)
	for range 20 {
		k.lent()
		w := make(token, 1)
		k.mu.Lock()
		k.waiting[objectID(1)] = w
		k.mu.Unlock()
		if err := k.far.Send(&wire.Drain{}, &wire.Resolved{ID: objectID(1), Result: wire.Result{Kind: wire.ResultInline}}); err != nil {
			t.Fatal(err)
		}
		if err := k.wait(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	me := goroutine()
	for _, who := range k.others {
		if who == me {
			t.Fatal("a goroutine that waited handled what is no answer")
		}
	}
	if len(k.others) != 20 {
		t.Errorf("%d of 20 other messages were handled", len(k.others))
	}
}

func TestABorrowerGivesUpWithItsContext(t *testing.T) {
	k := newTalk(t)
	k.lent()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := k.wait(ctx, make(token, 1)); err != context.DeadlineExceeded {
		t.Fatalf("got %v", err)
	}
	if err := k.ask(t.Context(), objectID(1)); err != nil {
		t.Fatal(err)
	}
	if n := k.l.Waiting(); n != 0 {
		t.Errorf("%d goroutines are counted as waiting", n)
	}
}

func TestTheEndOfALentConnectionReachesItsReader(t *testing.T) {
	k := newTalk(t)
	k.lent()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- k.wait(ctx, make(token, 1)) }()
	if err := k.far.Close(); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Receive(t, "the connection's end, at its reader", k.over); err != io.EOF {
		t.Errorf("got %v", err)
	}
	cancel()
	if err := <-gone; err != context.Canceled {
		t.Errorf("the waiter got %v", err)
	}
}

// Many goroutines that ask in bursts, alone and together: each gets its answer.
func TestPropertyEveryWaiterIsWoken(t *testing.T) {
	k := newTalk(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for i := 0; i < 5000 && !t.Failed(); {
				for range 1 + r.IntN(200) {
					ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
					if err := k.ask(ctx, objectID(g*1_000_000+i)); err != nil {
						t.Errorf("goroutine %d, question %d: %v", g, i, err)
					}
					cancel()
					i++
				}
				if g > 0 { // leaves the first alone for a while
					k.pause(time.Duration(r.IntN(3000)) * time.Microsecond)
				}
			}
		})
	}
	wg.Wait()
	if n := k.l.Waiting(); n != 0 {
		t.Errorf("%d goroutines are counted as waiting", n)
	}
}

// pause is time in which a goroutine does something else.
func (k *talk) pause(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		runtime.Gosched()
	}
}
