package mobula

import (
	"context"

	"mobula/internal/call"
)

// RuntimeContext says where code runs. Empty strings are what does not apply.
type RuntimeContext struct {
	Node      string // the node's id
	Job       string
	Namespace string
	Task      string // of the driver's own code: its implicit task
	Actor     string // inside an actor
	Function  string // the registered name
	Attempt   int    // of the task, from 1; 0 outside
	Returns   int    // how many results the caller asked for; -1 of a stream
}

// GetRuntimeContext tells where the caller runs, a driver or a task.
func GetRuntimeContext(ctx context.Context) (RuntimeContext, error) {
	p, err := call.Here(ctx)
	return RuntimeContext(p), err
}

// InTask tells whether ctx belongs to a task, rather than to a driver's own code or to nothing.
func InTask(ctx context.Context) bool { return call.InTask(ctx) }

// Void is the result of a function that has none but its error.
type Void = struct{}
