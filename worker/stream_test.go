package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/registry"
	"mobula/wire"
)

func (p *peer) stream(n int, bound int32, last func(err error)) *wire.TaskOptions {
	o := p.handle("stream", wire.TaskNormal, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		for i := range n {
			s := fmt.Sprint(i)
			if i == 2 {
				s = strings.Repeat("2", 3000)
			}
			if err := c.Emit(registry.Output{Size: len(s), Inline: []byte(s)}); err != nil {
				last(err)
				return nil, nil, err
			}
		}
		return nil, nil, nil
	})
	o.NumReturns, o.Backpressure = wire.Streaming, bound
	return o
}

func TestStreamStaysWithinItsBound(t *testing.T) {
	p := newPeer(t, Config{})
	task := p.task(p.stream(7, 3, func(err error) { t.Error(err) }))
	p.exec(1, task)
	items := func(n int) []*wire.StreamItem {
		return await(p, "items", func(log []wire.Msg) ([]*wire.StreamItem, bool) {
			is := of[*wire.StreamItem](log)
			return is, len(is) >= n
		})
	}
	blocked := func(n int) {
		await(p, "Blocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Blocked](log)) == n })
	}
	blocked(1) // the producer waits and gives its CPU back
	if n := len(items(3)); n != 3 {
		t.Fatalf("%d items before any was consumed, the bound is 3", n)
	}
	ack := func(n uint32) {
		p.e.Deliver([]wire.Msg{&wire.StreamAck{Task: task.Spec.ID, Consumed: n}})
		await(p, "Unblocked", func(log []wire.Msg) (int, bool) {
			return 0, len(of[*wire.Unblocked](log)) == len(of[*wire.Blocked](log))
		})
		p.e.Deliver([]wire.Msg{&wire.Resume{Task: task.Spec.ID}})
	}
	ack(2)
	blocked(2)
	if n := len(items(5)); n != 5 {
		t.Fatalf("%d items after two were consumed, the bound is 3", n)
	}
	ack(7)
	d := p.done(task.Spec.ID)
	if d.Err != nil || d.Items != 7 || len(d.Results) != 0 {
		t.Fatalf("got %+v", d)
	}
	for i, it := range items(7) {
		want := wire.ResultInline
		if i == 2 {
			want = wire.ResultStored
		}
		if int(it.Index) != i || it.Attempt != 1 || it.Result.Kind != want {
			t.Errorf("item %d: %+v", i, it)
		}
	}
}

func TestCancelledStreamStops(t *testing.T) {
	p := newPeer(t, Config{})
	got := make(chan error, 1)
	task := p.task(p.stream(10, 1, func(err error) { got <- err }))
	p.exec(1, task)
	await(p, "Blocked", func(log []wire.Msg) (int, bool) { return 0, len(of[*wire.Blocked](log)) == 1 })
	p.e.Deliver([]wire.Msg{&wire.CancelTask{Task: task.Spec.ID}})
	if err := <-got; !errors.Is(err, errs.ErrCancelled) {
		t.Errorf("Emit gave %v", err)
	}
	if d := p.done(task.Spec.ID); d.Err.Code != errs.CodeCancelled || d.Items != 1 {
		t.Errorf("got %+v", d)
	}
}

func TestAFunctionCalledAsAStreamIsRefused(t *testing.T) {
	p := newPeer(t, Config{})
	o := p.handle("plain", wire.TaskNormal, ok)
	o.NumReturns = wire.Streaming
	task := p.task(o)
	p.exec(1, task)
	if d := p.done(task.Spec.ID); !errors.Is(d.Err, errs.ErrRegistryMismatch) || !strings.Contains(d.Err.Error(), "called as a stream") {
		t.Fatalf("got %+v", d)
	}
}

func TestEmitAfterTheReturnFails(t *testing.T) {
	p := newPeer(t, Config{})
	var emit func(registry.Output) error
	o := p.handle("leaky", wire.TaskNormal, func(_ context.Context, c *registry.Call) ([]registry.Output, any, error) {
		emit = c.Emit
		return nil, nil, nil
	})
	o.NumReturns = wire.Streaming
	task := p.task(o)
	p.exec(1, task)
	if d := p.done(task.Spec.ID); d.Err != nil || d.Items != 0 {
		t.Fatalf("got %+v", d)
	}
	if err := emit(registry.Output{}); err == nil {
		t.Error("an item was taken after the end")
	}
}
