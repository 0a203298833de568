package node

import (
	"context"
	"fmt"
	"slices"

	"mobula/internal/ids"
	"mobula/internal/node/inspect"
	"mobula/internal/state"
)

// status is the node at a glance, or another one that is named.
func (r *requests) status(ctx context.Context, in state.StatusRequest) (out state.Status, err error) {
	if in.Node == "" {
		return r.inspect.Status(ctx, empty{})
	}
	to, err := r.scope(ctx, in.Node)
	if err != nil {
		return out, err
	}
	p, err := oneOf(ctx, r, to, state.MethodStatus, empty{}, r.inspect.Status)
	return p.out, err
}

// methodClass is what the nodes are asked about tasks that wait for a slot: inspect.ClassRequest; inspect.ClassReply.
const methodClass = "explain.class"

// explain is answered by the home of the task's or the object's job, and for a task that waits for a slot by the schedulers of the other nodes.
func (r *requests) explain(ctx context.Context, in state.ExplainRequest) (out state.Explanation, err error) {
	home, err := r.inspect.HomeOf(in.ID)
	if err != nil {
		return out, err
	}
	p, err := oneOf(ctx, r, r.homeScope(home), state.MethodExplain, in, r.inspect.Explain)
	for ex := &p.out; ex != nil; ex = ex.Next {
		if ex.Task != nil {
			state.TaskRows.Shift(ex.Task, -p.ahead)
		}
		if ex.TaskClass != 0 && err == nil {
			err = r.elsewhere(ctx, p.node, ex)
		}
	}
	return p.out, r.unknown(ctx, home, err)
}

// elsewhere adds to the explanation of a task what the schedulers of all nodes but the home of its job say of it.
func (r *requests) elsewhere(ctx context.Context, home ids.Home, ex *state.Explanation) error {
	to, err := r.scope(ctx, "")
	if err != nil {
		return err
	}
	to.here = to.here && home != r.numbers.Row().Home
	to.nodes = slices.DeleteFunc(slices.Clone(to.nodes), func(n ids.Home) bool { return n == home })
	if !to.here && len(to.nodes) == 0 {
		return nil
	}
	in := inspect.ClassRequest{Task: ex.ID, Class: ex.TaskClass}
	parts, missing, err := everywhere(ctx, r, to, answerWithin, methodClass, func(ids.Home) (inspect.ClassRequest, error) { return in, nil }, r.inspect.Class)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if p.out.Text != "" {
			ex.Details = append(ex.Details, fmt.Sprintf("scheduler of node %s: %s", p.name, p.out.Text))
		}
	}
	for _, m := range missing {
		ex.Details = append(ex.Details, fmt.Sprintf("scheduler of node %s: not known, %s", m.Node, m.Why))
	}
	return nil
}

// cancel has the home of a task's job cancel it.
func (r *requests) cancel(ctx context.Context, in state.CancelRequest) (out state.Cancelling, err error) {
	home, err := r.inspect.HomeOf(in.ID)
	if err != nil {
		return out, err
	}
	p, err := oneOf(ctx, r, r.homeScope(home), state.MethodCancel, in, r.inspect.Cancel)
	return p.out, r.unknown(ctx, home, err)
}

// kill has the home of an actor's job end it.
func (r *requests) kill(ctx context.Context, in state.KillRequest) (state.Killed, error) {
	id, err := parseActor(in.Actor)
	if err != nil && in.Actor != "" && !r.links.alone() {
		if rec, unknown := r.control.named(ctx, state.ActorRequest{Namespace: in.Namespace, Name: in.Actor}); unknown == nil {
			id, err = parseActor(rec.Actor)
		}
	}
	to := scope{here: true} // which says that it does not know the actor, if that is so
	if err == nil {
		if to = r.homeScope(id.Job().Home()); !to.here {
			in.Actor = id.String()
		}
	}
	p, failed := oneOf(ctx, r, to, state.MethodKill, in, r.inspect.Kill)
	if err == nil {
		failed = r.unknown(ctx, id.Job().Home(), failed)
	}
	return p.out, failed
}

// uncounted has the home of a job say which actors it numbers no calls to.
func (r *requests) uncounted(ctx context.Context, in state.UncountedRequest) (state.Uncounted, error) {
	p, err := oneOf(ctx, r, r.homeScope(ids.JobID(in.Job).Home()), state.MethodUncounted, in, r.inspect.Uncounted)
	return p.out, err
}

// spansOf hands the spans of another node's job to that node, by its clock.
func (r *requests) spansOf(ctx context.Context, home ids.Home, in state.SpansRequest) (state.SpansReply, error) {
	to := r.homeScope(home)
	if !to.here {
		in.Shift(r.links.ahead(home))
	}
	p, err := oneOf(ctx, r, to, state.MethodSpans, in, r.spans)
	return p.out, err
}

// oneOf has a request answered by the one node that it is about.
func oneOf[In, Out any](ctx context.Context, r *requests, to scope, method string, in In, here func(context.Context, In) (Out, error)) (p part[Out], err error) {
	parts, _, err := everywhere(ctx, r, to, answerWithin, method, func(ids.Home) (In, error) { return in, nil }, here)
	if err != nil {
		return p, err
	}
	return parts[0], nil
}
