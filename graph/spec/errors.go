package spec

import (
	"context"
	"errors"
	"fmt"

	"mobula/graph/internal/drive"
	"mobula/internal/errs"
)

// InvalidError says what is wrong with a node, or with the wanted keys. It matches mobula.ErrInvalid.
type InvalidError struct {
	Key Key // the zero Key: the wanted keys are wrong
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

// TaskError says which task of a graph failed; it need not be a wanted one. Err is the error that its function returned, or
// one that matches mobula.ErrPanic if it panicked, or a *mobula.TaskError if it ran in another process.
type TaskError struct {
	Key Key
	Err error
}

func (e *TaskError) Error() string { return fmt.Sprintf("graph: %q: %v", e.Key, e.Err) }

// Unwrap gives the task's error.
func (e *TaskError) Unwrap() error { return e.Err }

// Failed turns the error of a run of the plan into that of Get: that ctx ended, whatever followed from it, or which task failed.
func (p *Plan) Failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("graph: given up: %w", context.Cause(ctx))
	}
	if f, ok := errors.AsType[*drive.Failure](err); ok {
		return &TaskError{Key: p.Tasks[f.Task].Key, Err: f.Err}
	}
	return err
}
