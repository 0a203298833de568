package conn

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

// twoProcessors lets connections become hot on any machine.
func twoProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(2)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// answering has the far side of a connection answer each message by itself.
func answering(t *testing.T) (far, near *Conn) {
	far, near = socketPair(t, Config{})
	go func() {
		_ = far.Serve(new(lend.Lender), func(batch []wire.Msg) error { return far.TrySend(batch...) }) // ends with the test
	}()
	return far, near
}

// heat talks until the connection is hot.
func heat(t *testing.T, c *Conn) {
	t.Helper()
	for range 100_000 {
		if err := c.Send(&wire.Credit{Bytes: 1}); err != nil {
			t.Fatal(err)
		}
		recvN(t, c, 1)
		if c.rx.hot.on {
			return
		}
	}
	t.Fatal("a conversation did not become hot")
}

func TestAConversationBecomesHotAndCools(t *testing.T) {
	twoProcessors(t)
	far, near := answering(t)
	heat(t, near)
	if hotConns.Load() != 1 {
		t.Fatalf("%d connections are hot", hotConns.Load())
	}
	for i := range 100 { // small and large, all by reads that wait
		want := putValue(1+i*i*100, byte(i))
		if err := near.Send(want); err != nil {
			t.Fatal(err)
		}
		if got := recvN(t, near, 1)[0].(*wire.PutValue); len(got.Value.Data) != len(want.Value.Data) || got.Value.Data[0] != byte(i) {
			t.Fatalf("message %d came back as %d bytes", i, len(got.Value.Data))
		}
	}
	heat(t, near)
	got := make(chan error, 1)
	go func() {
		_, err := near.Recv()
		got <- err
	}()
	testkit.Eventually(t, "nothing comes and it cools", func() bool { return hotConns.Load() == 0 })
	if err := far.Send(&wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	heat(t, near)
	heap := make([]wire.Msg, hotBatch+1)
	for i := range heap {
		heap[i] = &wire.Drain{}
	}
	if err := far.Send(heap...); err != nil {
		t.Fatal(err)
	}
	recvN(t, near, len(heap))
	if err := near.Send(&wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	recvN(t, near, 1)
	if near.rx.hot.on {
		t.Error("a connection over which a heap came is still hot")
	}
}

func TestAHotConnectionEnds(t *testing.T) {
	twoProcessors(t)
	mine := errs.New(errs.CodeShutdown, "mine")
	for name, c := range map[string]struct {
		end  func(far, near *Conn)
		want error
	}{
		"the other side closes": {func(far, _ *Conn) { _ = far.Close() }, io.EOF},
		"it fails here":         {func(_, near *Conn) { near.Fail(mine) }, mine},
	} {
		t.Run(name, func(t *testing.T) {
			far, near := answering(t)
			heat(t, near)
			got := make(chan error, 1)
			go func() {
				_, err := near.Recv()
				got <- err
			}()
			c.end(far, near)
			if err := testkit.Receive(t, "the end of the reader", got); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if n := hotConns.Load(); n != 0 {
				t.Errorf("%d connections are counted as hot", n)
			}
		})
	}
}

// A connection that nobody reads any more does not keep its place.
func TestAHotConnectionThatIsLeftFreesItsPlace(t *testing.T) {
	twoProcessors(t)
	_, near := answering(t)
	heat(t, near)
	near.Fail(errs.New(errs.CodeShutdown, "left"))
	if n := hotConns.Load(); n != 0 {
		t.Errorf("%d connections are counted as hot", n)
	}
}

// One processor is left to the others.
func TestTheLastProcessorIsNotTaken(t *testing.T) {
	for procs := 1; procs <= 3; procs++ {
		func() {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			var hot int32
			for range procs + 1 {
				_, near := answering(t)
				for range 2000 {
					if err := near.Send(&wire.Credit{Bytes: 1}); err != nil {
						t.Fatal(err)
					}
					recvN(t, near, 1)
				}
				hot = max(hot, hotConns.Load())
				defer near.Fail(errs.New(errs.CodeShutdown, "end of round"))
			}
			if hot >= int32(procs) {
				t.Errorf("%d of %d processors' worth of connections were hot", hot, procs)
			}
		}()
	}
}
