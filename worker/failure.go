package worker

import (
	"errors"
	"runtime/debug"

	"mobula/internal/errs"
)

// failed makes the report of an error that a function returned. For a cancelled task it is the cancellation, for any other the task's
// failure with its chain of causes. The references in err keep their objects until the report is sent, if err is kept.
func (r *runner) failed(err error) *errs.Error {
	_ = r.call.ctx.Err() // notices a deadline that nobody has asked about
	cause := r.call.ctx.cause()
	out := &errs.Error{Code: errs.CodeTaskFailed, Name: r.task.Spec.Opts.Func, Task: r.call.id().String(), Msg: r.task.Spec.Opts.Func + ": " + errs.Text(err)}
	out.Cause = []*errs.Error{errs.From(err).Bare()}
	switch {
	case cause == nil:
	case errors.Is(cause, errs.ErrDeadline):
		out.Code = errs.CodeDeadline
	case errors.Is(cause, errs.ErrCancelled):
		out.Code = errs.CodeCancelled
	case errors.Is(cause, errs.ErrActorDied):
		out.Code, out.Cause = errs.CodeActorDied, nil
	case errors.Is(cause, errs.ErrActorUnavailable):
		out.Code, out.Cause = errs.CodeActorUnavailable, nil
	}
	return out
}

// logUnheard logs the failure of a call that nobody waits for.
func (r *runner) logUnheard(err *errs.Error) {
	if spec := r.task.Spec; spec.Opts.NumReturns == 0 {
		r.lane.e.log.Warn("a call that nobody waits for failed", "method", spec.Opts.Func, "actor", spec.Actor, "task", spec.ID, "err", err)
	}
}

// crashed makes the report of a panic, or of a goroutine that ended itself.
func (r *runner) crashed(p any) *errs.Error {
	spec := r.task.Spec
	out := panicked(spec.Opts.Func, r.call.id().String(), p)
	r.lane.e.abandonCreation(spec, out)
	return out
}

// panicked is the error of a function that panicked with p, or ended its goroutine.
func panicked(name, task string, p any) *errs.Error {
	out := &errs.Error{Code: errs.CodeTaskFailed, Name: name, Task: task}
	inner := &errs.Error{Code: errs.CodePanic}
	if p == nil {
		inner.Msg = "the function called runtime.Goexit instead of returning"
	} else {
		inner.Msg = faulted(p)
		out.Stack = string(debug.Stack()) // in the outermost error, which errors.As finds
		if err, ok := p.(error); ok {
			inner.Cause = []*errs.Error{errs.From(err).Bare()}
		}
	}
	out.Msg = name + ": " + inner.Msg
	out.Cause = []*errs.Error{inner}
	return out
}
