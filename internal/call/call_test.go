package call

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/ids"
	"mobula/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// granter is a node that only grants room in the store.
type granter struct {
	asked chan *wire.Create
}

func (g granter) Send(msgs ...wire.Msg) error {
	for _, m := range msgs {
		if m, ok := m.(*wire.Create); ok {
			g.asked <- m
		}
	}
	return nil
}

func (g granter) Close() error { close(g.asked); return nil }

func (granter) Map(e wire.Extent, _ bool) ([]byte, error) { return make([]byte, e.Size), nil }

// driver gives the context of a client of a granter.
func driver(t *testing.T) context.Context {
	g := granter{asked: make(chan *wire.Create, 16)}
	c := client.New(client.Config{Port: g, Memory: g, Log: slog.New(slog.DiscardHandler), Welcome: &wire.Welcome{Client: 1, Job: 7, Root: ids.RootTask(7, 1)}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range g.asked {
			c.Deliver([]wire.Msg{&wire.Created{Req: m.Req, ID: m.ID, Extent: wire.Extent{Size: m.Size}}})
		}
	}()
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		<-done
	})
	return client.WithTask(t.Context(), c.Root())
}

// A call can be sent with any number of arguments, each as large as a message allows.
func TestArgumentsFitTheirMessage(t *testing.T) {
	n := wire.MessageValues/wire.InlineMax + 2
	var k Call
	k.Begin(driver(t), New("test/large", Shape{Kind: Plain, In: make([]*Plan, n), Returns: 1}, Defaults), n, nil)
	e := codec.Encoded{Size: wire.InlineMax, Inline: make([]byte, wire.InlineMax)}
	if k.err != nil {
		t.Fatal(k.err)
	}
	for i := range k.spec.Args {
		k.value(&k.spec.Args[i], &e)
	}
	if k.err != nil {
		t.Fatal(k.err)
	}
	inside := 0
	for _, a := range k.spec.Args {
		inside += len(a.Value.Data)
	}
	if inside > wire.MessageValues || len(k.large) == 0 {
		t.Errorf("%d bytes are in the message, %d values in the store", inside, len(k.large))
	}
	for _, h := range k.large {
		h.Release()
	}
}
