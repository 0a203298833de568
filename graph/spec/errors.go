package spec

import (
	"context"
	"errors"
	"fmt"

	"mobula/graph/internal/drive"
	"mobula/internal/errs"
)

// InvalidError says what is wrong with a node, or with what is wanted. It matches mobula.ErrInvalid.
type InvalidError struct {
	Key Key // the zero Key: what is wanted is wrong
	Why string
}

func (e *InvalidError) Error() string {
	if e.Key == (Key{}) {
		return "graph: " + e.Why
	}
	return fmt.Sprintf("graph: %q: %s", e.Key, e.Why)
}

// Is matches mobula.ErrInvalid.
func (e *InvalidError) Is(target error) bool { return target == errs.ErrInvalid }

// TaskError says which task of a graph failed, which need not be one that was wanted. Err is what its function returned; where
// that panicked, an error that matches mobula.ErrPanic; of a task in another process a *mobula.TaskError.
type TaskError struct {
	Key Key
	Err error
}

func (e *TaskError) Error() string { return fmt.Sprintf("graph: %q: %v", e.Key, e.Err) }

// Unwrap gives the task's error.
func (e *TaskError) Unwrap() error { return e.Err }

// Failed is what Get is to say where a run of the plan ended with err: that ctx ended, whatever came of it, or which task failed.
func (p *Plan) Failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("graph: given up: %w", context.Cause(ctx))
	}
	if f, ok := errors.AsType[*drive.Failure](err); ok {
		return &TaskError{Key: p.Tasks[f.Task].Key, Err: f.Err}
	}
	return err
}
