package worker

import (
	"bytes"
	"context"
	"testing"

	"mobula/internal/registry"
	"mobula/wire"
)

// However many results a task has, its report is a message that can be sent.
func TestManyResultsFitTheirMessage(t *testing.T) {
	p := newPeer(t, Config{})
	one := bytes.Repeat([]byte("x"), p.c.InlineMax())
	n := wire.MessageValues/len(one) + 10
	opts := p.handle("many", wire.TaskNormal, func(context.Context, *registry.Call) ([]registry.Output, any, error) {
		outs := make([]registry.Output, n)
		for i := range outs {
			outs[i] = registry.Output{Size: len(one), Inline: one}
		}
		return outs, nil, nil
	})
	opts.NumReturns = int32(n)
	task := p.task(opts)
	p.exec(1, task)
	d := p.done(task.Spec.ID)
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	inside, stored := 0, 0
	for _, r := range d.Results {
		if r.Kind == wire.ResultStored {
			stored++
		}
		inside += len(r.Value.Data)
	}
	if stored != 10 || inside > wire.MessageValues {
		t.Errorf("%d results are stored, the others have %d bytes", stored, inside)
	}
}
