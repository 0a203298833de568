package link

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/objectstore"
	"mobula/raylet/internode"
	"mobula/remote"
	"mobula/wire"
)

// transport keeps what it is given; while it is full it refuses, or waits for room.
type transport struct {
	mu   sync.Mutex
	full bool
	room chan struct{}
	got  [][]byte
	came chan struct{} // one for each payload
	to   []uint64      // the epoch that each is for
}

func (t *transport) TrySend(to remote.Life, p []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.full {
		return errs.New(errs.CodeBacklog, "full")
	}
	t.got, t.to = append(t.got, p), append(t.to, to.Epoch)
	t.came <- struct{}{}
	return nil
}

func (t *transport) Send(ctx context.Context, to remote.Life, p []byte) error {
	select {
	case <-t.room:
		return t.TrySend(to, p)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open lets everything through again.
func (t *transport) open() {
	t.mu.Lock()
	t.full = false
	t.mu.Unlock()
	close(t.room)
}

// said are the messages that went, with those for clients apart.
func (t *transport) said(tb testing.TB) (out []string) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	var d internode.Decoder
	for _, p := range t.got {
		err := d.Decode(append([]byte(nil), p...), func(m internode.Msg) error {
			c, ok := m.(*internode.ToClients)
			if !ok {
				out = append(out, m.Kind().String())
				return nil
			}
			for _, it := range c.Items {
				msgs, err := it.Msgs[0].(*wire.Encoded).Messages()
				if err != nil {
					tb.Fatal(err)
				}
				for _, msg := range msgs {
					out = append(out, it.Client.String()+" "+msg.Kind().String())
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return out
}

func newBox(t *testing.T) (*Box, *transport, *[]error) {
	tr := &transport{room: make(chan struct{}), came: make(chan struct{}, 64)}
	var dropped []error
	return New(Config{Home: 2, Sender: tr, Life: t.Context(), Dropped: func(_ internode.Msg, err error) { dropped = append(dropped, err) }}), tr, &dropped
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}

// What is pushed goes in order, in as few payloads as it fits in, and a receipt is called when what is before it went.
func TestMessagesGoInOrder(t *testing.T) {
	b, tr, _ := newBox(t)
	a := &Client{Box: b, Job: 1, Client: 7}
	c := &Client{Box: b, Job: 1, Client: 8}
	a.Push(&wire.Drain{})
	a.Push(&wire.Collect{})
	c.Push(&wire.Drain{})
	b.Push(&internode.CloseJob{Job: 1})
	after := -1
	a.Push(outlet.Receipt(func() { after = len(tr.got) }))
	a.Push(&wire.Drain{})
	a.Flush()
	equal(t, tr.said(t), "7 Drain", "7 Collect", "8 Drain", "CloseJob", "7 Drain")
	if after != 1 || len(tr.got) != 2 {
		t.Errorf("the receipt was called after %d of %d payloads", after, len(tr.got))
	}
}

// What the transport has no room for waits, and what is pushed meanwhile goes behind it.
func TestWhatHasNoRoomWaits(t *testing.T) {
	b, tr, _ := newBox(t)
	tr.full = true
	b.Push(&internode.CloseJob{Job: 1})
	if b.Full() {
		t.Error("it is full before the transport was asked")
	}
	b.Flush()
	if !b.Full() {
		t.Error("nothing tells that what is pushed waits")
	}
	b.Push(&internode.JobClosed{Job: 1})
	b.Flush()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("over")
	cancel(why)
	if err := b.Await(ctx); !errors.Is(err, why) {
		t.Errorf("a wait whose context has ended gives %v", err)
	}
	tr.open()
	if err := b.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was pushed behind it may be going still
		<-tr.came
	}
	equal(t, tr.said(t), "CloseJob", "JobClosed")
	if b.Full() {
		t.Error("it is full though the transport has room")
	}
}

// A message that does not go between nodes is dropped, and those around it go.
func TestAMessageThatCannotGoIsDropped(t *testing.T) {
	b, tr, dropped := newBox(t)
	b.Push(&internode.CloseJob{Job: 1})
	b.Push(&internode.ToStore{Job: 1, Msg: objectstore.Tick{}})
	b.Push(&internode.JobClosed{Job: 1})
	b.Flush()
	equal(t, tr.said(t), "CloseJob", "JobClosed")
	if len(*dropped) != 1 || !errors.Is((*dropped)[0], errs.ErrInvalid) {
		t.Errorf("dropped: %v", *dropped)
	}
}

// Tasks whose arguments are more than a payload holds go one by one.
func TestLargeTasksGoOneByOne(t *testing.T) {
	b, tr, dropped := newBox(t)
	x := &wire.Exec{Lease: 1}
	for range 4 {
		x.Tasks = append(x.Tasks, wire.ExecTask{Spec: &wire.TaskSpec{Opts: &wire.TaskOptions{}, Args: []wire.Arg{{Ref: ids.RootTask(1, 1).Put(1)}}}, Args: []wire.ArgValue{{Result: wire.Result{
			Kind: wire.ResultInline, Value: wire.Value{Data: make([]byte, internode.MaxPayload/3)},
		}}}})
	}
	(&Client{Box: b, Job: 1, Client: 7}).Push(x)
	b.Flush()
	if len(*dropped) > 0 {
		t.Fatal(*dropped)
	}
	equal(t, tr.said(t), "7 Exec", "7 Exec", "7 Exec", "7 Exec")
}

// What is pushed is for the life of the node that was met first.
func TestABoxIsForOneLife(t *testing.T) {
	b, tr, _ := newBox(t)
	for _, met := range []uint64{0, 3, 4} {
		b.Meet(met)
		b.Push(&internode.JobClosed{Job: 1})
		b.Flush()
	}
	if !slices.Equal(tr.to, []uint64{0, 3, 3}) {
		t.Errorf("for epochs %v", tr.to)
	}
}
