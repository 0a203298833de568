package mobula

import (
	"context"
	"log/slog"
	"testing"

	"mobula/internal/call"
	"mobula/internal/client"
	"mobula/internal/codec"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/wire"
)

// nowhere is a port that drops everything: what is left is the cost of the API and the client.
type nowhere struct{}

func (nowhere) Send(...wire.Msg) error                { return nil }
func (nowhere) Close() error                          { return nil }
func (nowhere) Map(wire.Extent, bool) ([]byte, error) { return nil, nil }

func benchContext(b *testing.B) (context.Context, *client.Client) {
	c := client.New(client.Config{Port: nowhere{}, Memory: nowhere{}, Log: slog.New(slog.DiscardHandler), Welcome: &wire.Welcome{Client: 1, Job: 7, Root: ids.RootTask(7, 1)}})
	b.Cleanup(func() { _ = c.Close(context.Background()) })
	return client.WithTask(context.Background(), c.Root()), c
}

func BenchmarkGo(b *testing.B) {
	ctx, _ := benchContext(b)
	b.ReportAllocs()
	for b.Loop() {
		add.Go(ctx, V(1.0), V(2.0)).Release()
	}
}

func BenchmarkGoDropped(b *testing.B) {
	ctx, _ := benchContext(b)
	b.ReportAllocs()
	for b.Loop() {
		add.Go(ctx, V(1.0), V(2.0))
	}
}

func BenchmarkGoOptions(b *testing.B) {
	ctx, _ := benchContext(b)
	b.ReportAllocs()
	for b.Loop() {
		add.Go(ctx, V(1.0), V(2.0), Resources{CPU: .5}, Retries(4)).Release()
	}
}

func BenchmarkGoString(b *testing.B) {
	ctx, _ := benchContext(b)
	b.ReportAllocs()
	for b.Loop() {
		fails.Go(ctx, V("argument")).Release()
	}
}

func BenchmarkActorCall(b *testing.B) {
	ctx, _ := benchContext(b)
	a, err := counters.Spawn(ctx, V(1))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		counterInc.Go(ctx, a, V(1)).Release()
	}
}

func BenchmarkGetResolved(b *testing.B) {
	ctx, _ := benchContext(b)
	r, err := Put(ctx, 1.5)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if v, err := r.Get(ctx); err != nil || v != 1.5 {
			b.Fatal(v, err)
		}
	}
}

func BenchmarkPut1K(b *testing.B) {
	ctx, _ := benchContext(b)
	data := make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Put(ctx, data)
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

func BenchmarkInvoke(b *testing.B) {
	ctx, c := benchContext(b)
	f, _ := registry.Lookup("test/add")
	in := func(x float64) wire.Value {
		t := codec.Type[float64]{Plan: call.PlanOf[float64]()}
		data, _ := t.AppendSmall(nil, &x)
		return wire.Value{Meta: t.Meta(), Data: data}
	}
	tc := &client.TaskContext{Client: c, Spec: &wire.TaskSpec{Opts: &wire.TaskOptions{Func: "test/add", NumReturns: 1}}}
	ctx = client.WithTask(ctx, tc)
	rc := &registry.Call{Inputs: []registry.Input{{Value: in(1)}, {Value: in(2)}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := f.Invoke(ctx, rc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoCancellable(b *testing.B) {
	ctx, _ := benchContext(b)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		add.Go(ctx, V(1.0), V(2.0)).Release()
	}
}
