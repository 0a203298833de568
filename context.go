package mobula

import (
	"context"

	"mobula/internal/call"
)

// RuntimeContext says where code runs. A field that does not apply is empty.
type RuntimeContext struct {
	Node      string // the node's name
	NodeID    string // for OnNode
	Job       string
	Namespace string
	Task      string // in the driver's own code: its implicit task
	Actor     string // inside an actor
	Function  string // the registered name
	Attempt   int    // of the task, from 1; 0 outside
	Returns   int    // how many results the caller asked for; -1 for a stream
}

// GetRuntimeContext tells where the caller runs: in a driver or in a task.
func GetRuntimeContext(ctx context.Context) (RuntimeContext, error) {
	p, err := call.Here(ctx)
	return RuntimeContext(p), err
}

// InTask tells whether ctx belongs to a task, not to a driver's own code or to no cluster.
func InTask(ctx context.Context) bool { return call.InTask(ctx) }

// Void is the result of a function that returns nothing but an error.
type Void = struct{}
