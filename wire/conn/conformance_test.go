package conn

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/internal/testkit"
	"mobula/wire"
)

// connected makes both ends of a connection over one transport.
type connected func(t testing.TB, cfg Config) (a, b *Conn)

// Whatever the transport, a connection keeps the same promises.
func TestConformance(t *testing.T) {
	for kind, pair := range map[string]connected{"socket": socketPair, "memory": memoryPair} {
		for name, test := range map[string]func(*testing.T, connected){
			"EverySendersMessagesArriveInOrder":           testEverySendersMessagesArriveInOrder,
			"SendWaitsForRoomAndTrySendDoesNot":           testSendWaitsForRoomAndTrySendDoesNot,
			"CloseWritesWhatIsPending":                    testCloseWritesWhatIsPending,
			"AnExecThatIsTooLargeGoesInParts":             testAnExecThatIsTooLargeGoesInParts,
			"CloseDoesNotWaitForeverForAReader":           testCloseDoesNotWaitForeverForAReader,
			"WriteTimeoutFailsTheConnection":              testWriteTimeoutFailsTheConnection,
			"APatientConnectionWaitsForAProcessThatLives": testAPatientConnectionWaitsForAProcessThatLives,
			"FailEndsWaits":                               testFailEndsWaits,
			"WhatCameBeforeABrokenPipeIsRead":             testWhatCameBeforeABrokenPipeIsRead,
			"DeathOfTheOtherSideIsSeenByBothDirections":   testDeathOfTheOtherSideIsSeenByBothDirections,
			"ServeEndsWithItsHandlersError":               testServeEndsWithItsHandlersError,
			"IdleConnectionHoldsNoBuffers":                testIdleConnectionHoldsNoBuffers,
			"OptionsArriveAsOnePointer":                   testOptionsArriveAsOnePointer,
			"FlushKeepsOrderAndLosesNothing":              testFlushKeepsOrderAndLosesNothing,
			"ReadingEndsBehindWhatWasSent":                testReadingEndsBehindWhatWasSent,
			"WhatWasSentBeforeCloseArrives":               testWhatWasSentBeforeCloseArrives,
			"MoreBuffersThanOneCallTakes":                 testMoreBuffersThanOneCallTakes,
			"FilesTravel":                                 testFilesTravel,
			"OnlyMessagesWithAFileTakeOne":                testOnlyMessagesWithAFileTakeOne,
			"PendingFilesAreClosed":                       testPendingFilesAreClosed,
		} {
			t.Run(kind+"/"+name, func(t *testing.T) { test(t, pair) })
		}
	}
}

func testEverySendersMessagesArriveInOrder(t *testing.T, pair connected) {
	a, b := pair(t, Config{SoftBacklog: 200_000})
	const senders, each = 4, 300
	all := recorded(t)
	var want [senders][]wire.Msg
	for s := range senders {
		r := rand.New(rand.NewPCG(uint64(s), 7))
		for i := range each {
			m := all[r.IntN(len(all))]
			if i%50 == 7 {
				m = putValue(300_000, byte(i))
			}
			want[s] = append(want[s], m)
		}
	}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i, m := range want[s] {
				// A marker first says whose message it is.
				if err := a.Send(&wire.Unpin{N: uint32(s)}, m); err != nil {
					t.Errorf("sender %d, message %d: %v", s, i, err)
					return
				}
			}
		})
	}
	got := recvN(t, b, 2*senders*each)
	wg.Wait()
	var next [senders]int
	for i := 0; i < len(got); i += 2 {
		s := got[i].(*wire.Unpin).N
		if w := want[s][next[s]]; !reflect.DeepEqual(got[i+1], w) {
			t.Fatalf("message %d of sender %d is\n%+v\nwant\n%+v", next[s], s, got[i+1], w)
		}
		next[s]++
	}
	if c := b.Counts(); c.RecvMsgs != uint64(len(got)) || c.RecvBytes != a.Counts().SentBytes {
		t.Errorf("counters are %+v and %+v", c, a.Counts())
	}
	testkit.Eventually(t, "nothing is pending", func() bool { return a.Backlog() == 0 })
}

func testSendWaitsForRoomAndTrySendDoesNot(t *testing.T, pair connected) {
	a, b := pair(t, Config{SoftBacklog: 1 << 20, HardBacklog: 3 << 20})
	// b reads nothing: the socket takes some hundred KiB, the rest is pending.
	sent := 0
	for ; a.Backlog() <= 1<<20; sent++ {
		if err := a.Send(putValue(400_000, byte(sent))); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	mine := errors.New("mine")
	cancel(mine)
	if err := a.SendContext(ctx, &wire.Drain{}); err != mine {
		t.Fatalf("Send with a full backlog and an ended context returned %v", err)
	}
	for ; a.Backlog() <= 3<<20; sent++ {
		if err := a.TrySend(putValue(400_000, byte(sent))); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, a.TrySend(&wire.Drain{}), errs.ErrBacklog, "3145728")
	waiting := make(chan error, 2)
	go func() { waiting <- a.Send(&wire.Drain{}) }()
	go func() { waiting <- a.AwaitRoom() }()
	got := recvN(t, b, sent+1)
	for range 2 {
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range got[:sent] {
		if p := m.(*wire.PutValue); len(p.Value.Data) != 400_000 || p.Value.Data[0] != byte(i) {
			t.Fatalf("message %d is not what was sent", i)
		}
	}
	if _, ok := got[sent].(*wire.Drain); !ok || len(got) != sent+1 {
		t.Fatalf("refused messages were sent: %d came, the last is %T", len(got), got[len(got)-1])
	}
	testkit.Eventually(t, "the backlog is empty", func() bool { return a.Backlog() == 0 })
	if err := a.TrySend(&wire.Drain{}); err != nil {
		t.Fatalf("after the backlog was read: %v", err)
	}
}

func testCloseWritesWhatIsPending(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	const n = 30
	for i := range n {
		if err := a.Send(putValue(100_000, byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	if got := recvN(t, b, n); len(got) != n {
		t.Fatalf("%d messages of %d", len(got), n)
	}
	if _, err := b.Recv(); err != io.EOF {
		t.Fatalf("after the last message: %v, want EOF", err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	wantErr(t, a.Send(&wire.Drain{}), errs.ErrShutdown)
	if _, err := a.Recv(); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("Recv after Close: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// Tasks that are ready at once go in one Exec. Together they may be more than a frame takes, each
// by itself not.
func testAnExecThatIsTooLargeGoesInParts(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	data := make([]byte, 10<<20)
	exec := &wire.Exec{Lease: 7}
	for i := range 15 {
		exec.Tasks = append(exec.Tasks, wire.ExecTask{Attempt: uint32(i), Spec: &wire.TaskSpec{ID: ids.RootTask(1, uint64(i)), Opts: &wire.TaskOptions{Func: "f"}, Args: []wire.Arg{{Ref: ids.RootTask(1, 99).Put(1)}}},
			Args: []wire.ArgValue{{Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: data}}}}})
	}
	if err := a.Send(exec, &wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	next := uint32(0)
	for done := false; !done; {
		for _, m := range recvN(t, b, 1) {
			x, ok := m.(*wire.Exec)
			if done = !ok; done {
				break
			}
			for i := range x.Tasks {
				if x.Lease != 7 || x.Tasks[i].Attempt != next || len(x.Tasks[i].Args[0].Result.Value.Data) != len(data) {
					t.Fatalf("task %d is not what was sent", next)
				}
				next++
			}
		}
	}
	if next != 15 {
		t.Fatalf("%d tasks of 15 came", next)
	}
	one := &wire.Exec{Tasks: []wire.ExecTask{{Spec: exec.Tasks[0].Spec, Args: []wire.ArgValue{{Result: wire.Result{Kind: wire.ResultInline, Value: wire.Value{Data: make([]byte, wire.MaxFrame)}}}}}}}
	wantErr(t, a.Send(one), errs.ErrInvalid, "Exec", "67108864")
}

// fillUp sends more than the socket takes, and more than the soft backlog, in one Send: between several a short
// WriteTimeout can pass, and the next would fail.
func fillUp(t *testing.T, c *Conn) {
	t.Helper()
	if err := c.Send(putValue(400_000, 1), putValue(400_000, 1), putValue(400_000, 1)); err != nil {
		t.Fatal(err)
	}
}

func testCloseDoesNotWaitForeverForAReader(t *testing.T, pair connected) {
	a, _ := pair(t, Config{Linger: 20 * time.Millisecond})
	fillUp(t, a)
	wantErr(t, a.Close(), errs.ErrDisconnected, "unwritten", "20ms")
}

func testWriteTimeoutFailsTheConnection(t *testing.T, pair connected) {
	a, _ := pair(t, Config{WriteTimeout: 30 * time.Millisecond, SoftBacklog: 1 << 20})
	fillUp(t, a)
	wantErr(t, a.Send(&wire.Drain{}), errs.ErrDisconnected, "read nothing for 30ms") // waits for room first
	if _, err := a.Recv(); !errors.Is(err, errs.ErrDisconnected) {
		t.Errorf("Recv: %v", err)
	}
	wantErr(t, a.Close(), errs.ErrDisconnected)
}

// A patient connection outlasts the time in which another one fails, while the process at its end
// lives, however little that reads.
func testAPatientConnectionWaitsForAProcessThatLives(t *testing.T, pair connected) {
	cfg := Config{WriteTimeout: 10 * time.Millisecond, SoftBacklog: 1 << 20, Patient: true}
	a, b := pair(t, cfg)
	fillUp(t, a)
	cfg.Patient = false
	other, _ := pair(t, cfg)
	fillUp(t, other)
	wantErr(t, other.AwaitRoom(), errs.ErrDisconnected, "read nothing for 10ms") // a has had as long
	if err := a.TrySend(&wire.Drain{}); err != nil {
		t.Fatal(err)
	}
	for {
		batch, err := b.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if _, last := batch[len(batch)-1].(*wire.Drain); last {
			break
		}
	}
	if err := a.AwaitRoom(); err != nil {
		t.Error(err)
	}
}

func testFailEndsWaits(t *testing.T, pair connected) {
	a, _ := pair(t, Config{SoftBacklog: 1 << 20})
	fillUp(t, a)
	mine := errs.New(errs.CodeOutOfMemory, "mine")
	results := make(chan error, 3)
	go func() { _, err := a.Recv(); results <- err }()
	go func() { results <- a.Send(&wire.Drain{}) }()
	go func() { results <- a.AwaitRoom() }()
	a.Fail(mine)
	for range 3 {
		if err := <-results; err != mine {
			t.Errorf("a wait ended with %v", err)
		}
	}
	a.Fail(errors.New("later"))
	if err := a.TrySend(&wire.Drain{}); err != mine {
		t.Errorf("the first failure does not stay: %v", err)
	}
}

// A goodbye, say, of a side that closed while we wrote to it: it is read, though the write has failed first.
func testWhatCameBeforeABrokenPipeIsRead(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	if err := errors.Join(b.Send(&wire.Bye{}), a.Send(&wire.Drain{})); err != nil { // which b leaves unread
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	var broken error
	for broken == nil {
		broken = a.Send(&wire.Drain{})
	}
	wantErr(t, broken, errs.ErrDisconnected)
	if got := recvN(t, a, 1); len(got) != 1 || got[0].Kind() != wire.KindBye {
		t.Errorf("read %v, want the goodbye", got)
	}
	if _, err := a.Recv(); err != broken || !a.Gone() {
		t.Errorf("then %v, want %v", err, broken)
	}
	if err := a.Close(); err != broken {
		t.Errorf("Close: %v, want %v", err, broken)
	}
}

func testDeathOfTheOtherSideIsSeenByBothDirections(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	b.Fail(errors.New("dead"))
	if _, err := a.Recv(); err != io.EOF {
		t.Errorf("Recv: %v, want EOF", err)
	}
	for range 2 { // the one that finds out, and later ones
		wantErr(t, a.TrySend(&wire.Drain{}), errs.ErrDisconnected, "process")
	}
}

func testServeEndsWithItsHandlersError(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	if err := a.Send(&wire.Credit{Bytes: 1}); err != nil {
		t.Fatal(err)
	}
	mine := errors.New("mine")
	if err := b.Serve(new(lend.Lender), func([]wire.Msg) error { return mine }); err != mine {
		t.Fatalf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Serve(new(lend.Lender), func([]wire.Msg) error { return mine }); err != io.EOF {
		t.Fatalf("a clean end is %v", err)
	}
}

func testIdleConnectionHoldsNoBuffers(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	for _, c := range []*Conn{a, b} {
		other := a
		if c == a {
			other = b
		}
		if err := c.Send(putValue(60_000, 1), putValue(60_000, 2), &wire.Drain{}); err != nil {
			t.Fatal(err)
		}
		recvN(t, other, 3)
	}
	// A Recv that waits gives its buffer back.
	done := make(chan error, 1)
	go func() { _, err := b.Recv(); done <- err }()
	for _, c := range []*Conn{a, b} {
		testkit.Eventually(t, "the send buffers are given back", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.spare == nil && (c.out == nil || c.out.Cap() <= keepBuffer) && !c.writing
		})
	}
	a.Close()
	if err := <-done; err != io.EOF {
		t.Fatal(err)
	}
	if reader := reflect.ValueOf(&b.rx.FrameReader).Elem(); !reader.FieldByName("box").IsNil() || !reader.FieldByName("big").IsNil() {
		t.Error("an ended connection holds a read buffer")
	}
}

func testOptionsArriveAsOnePointer(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	x := &wire.TaskOptions{Func: "f", Resources: []wire.Resource{{Name: "CPU", Amount: 500}}}
	y := &wire.TaskOptions{Func: "g", NumReturns: wire.Streaming}
	same := *x // equal, another pointer
	var want []*wire.TaskOptions
	for i := range 30 {
		o := []*wire.TaskOptions{x, y, &same}[i%3]
		want = append(want, o)
		if err := a.Send(&wire.Submit{Spec: &wire.TaskSpec{ID: ids.RootTask(1, uint64(i)), Opts: o}}); err != nil {
			t.Fatal(err)
		}
	}
	byFunc := make(map[string]*wire.TaskOptions)
	for i, m := range recvN(t, b, 30) {
		o := m.(*wire.Submit).Spec.Opts
		if !reflect.DeepEqual(o, want[i]) {
			t.Fatalf("options %d are %+v", i, o)
		}
		if first := byFunc[o.Func]; first != nil && first != o {
			t.Fatalf("options %d have a pointer of their own", i)
		}
		byFunc[o.Func] = o
	}
}

func testFlushKeepsOrderAndLosesNothing(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	const n = 3000
	go func() {
		for i := range n {
			if err := a.TrySend(&wire.Credit{Bytes: int64(i)}); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
			if i%3 == 0 {
				a.Flush()
			}
		}
	}()
	for i, m := range recvN(t, b, n) {
		if got := m.(*wire.Credit).Bytes; got != int64(i) {
			t.Fatalf("message %d is number %d", i, got)
		}
	}
	testkit.Eventually(t, "nothing is pending", func() bool { return a.Backlog() == 0 })
	a.Flush() // with nothing to do
}

// What a process sent before it ended is read, then the end, though another still holds its end of the socket.
func testReadingEndsBehindWhatWasSent(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	if err := a.Send(&wire.Stats{Running: 7}); err != nil {
		t.Fatal(err)
	}
	b.EndReading()
	got, err := b.Recv()
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	if _, err := b.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("behind it: %v", err)
	}
}

// What was sent before Close arrives, though the socket is shut before it is closed.
func testWhatWasSentBeforeCloseArrives(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	const n = 50
	for i := range n {
		if err := a.Send(putValue(1000, byte(i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for i, m := range recvN(t, b, n) {
		if m.(*wire.PutValue).Value.Data[0] != byte(i) {
			t.Fatalf("message %d is another", i)
		}
	}
}

func testMoreBuffersThanOneCallTakes(t *testing.T, pair connected) {
	a, b := pair(t, Config{})
	msgs := make([]wire.Msg, 3*maxIovecs)
	for i := range msgs {
		msgs[i] = putValue(spliceFrom+i, byte(i))
	}
	if err := a.Send(msgs...); err != nil {
		t.Fatal(err)
	}
	for i, m := range recvN(t, b, len(msgs)) {
		if p := m.(*wire.PutValue); len(p.Value.Data) != spliceFrom+i || p.Value.Data[spliceFrom/2] != byte(i) {
			t.Fatalf("message %d has %d bytes", i, len(p.Value.Data))
		}
	}
}
