package client

import (
	"context"

	"mobula/wire"
)

// submits sends tasks as there is credit, calls of an actor in order.
type submits struct {
	*base
	handles  *handles
	outbox   *outbox
	credit   *credit
	straight *straight
}

// Submit sends a task and gives a handle for each of its returns; a stream has none. It fills in only the Seq of
// an actor call whose Seq is 0, by the counter of the task that ctx belongs to. It blocks only for credit; if it
// fails, nothing was sent. The caller keeps the handles of the arguments until it returns.
func (ss *submits) Submit(ctx context.Context, spec *wire.TaskSpec) ([]*Handle, error) {
	if err := ss.Err(); err != nil {
		return nil, err
	}
	tc := ss.task(ctx)
	if ss.straight.takes(tc, spec) {
		return ss.straight.submit(ctx, tc, spec)
	}
	if ss.credit.on.Load() {
		if err := ss.credit.admit(ctx, tc, wire.CostOfSpec(spec)); err != nil {
			return nil, err
		}
	}
	ss.straight.maker(tc)
	hs := ss.handles.returns(spec)
	var err error
	if spec.Kind == wire.TaskActorCall && spec.Seq == 0 {
		err = ss.submitInOrder(ctx, spec)
	} else {
		err = ss.outbox.submit(&wire.Submit{Spec: spec})
	}
	if err != nil {
		for _, h := range hs {
			h.Release()
		}
		return nil, err
	}
	return hs, nil
}

func (ss *submits) submitInOrder(ctx context.Context, spec *wire.TaskSpec) error {
	o := ss.task(ctx).orderOf(spec.Actor)
	o.mu.Lock()
	defer o.mu.Unlock()
	spec.Seq = o.seq + 1
	if err := ss.outbox.submit(&wire.Submit{Spec: spec}); err != nil {
		return err
	}
	o.seq++
	return nil
}
