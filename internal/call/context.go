package call

import (
	"context"

	"mobula/internal/client"
	"mobula/wire"
)

// Place says where code runs, as mobula.RuntimeContext does.
type Place struct {
	Node      string
	NodeID    string
	Job       string
	Namespace string
	Task      string
	Actor     string
	Function  string
	Attempt   int
	Returns   int
}

// Here gives the place where the caller runs.
func Here(ctx context.Context) (Place, error) {
	tc, err := taskOf(ctx)
	if err != nil {
		return Place{}, err
	}
	w := tc.Client.Welcome()
	out := Place{Node: w.Node, NodeID: w.Client.Home().String(), Namespace: w.Namespace, Job: tc.Task.Job().String(), Task: tc.Task.String(), Attempt: int(tc.Attempt)}
	if s := tc.Spec; s != nil {
		out.Function, out.Returns = s.Opts.Func, int(s.Opts.NumReturns)
		if s.Kind != wire.TaskNormal {
			out.Actor = s.Actor.String()
		}
	}
	return out, nil
}

// InTask tells whether ctx belongs to a task.
func InTask(ctx context.Context) bool {
	tc := client.FromContext(ctx)
	return tc != nil && tc.Spec != nil
}
