package errs

// TaskError is the end of a task that failed, for errors.As: its function returned an error or panicked, its process died or was
// killed for memory, its time ran out, or it was cancelled. What is wrong with an actor, an object or the runtime is none.
type TaskError struct {
	Name  string // the function
	Task  string // the task's id
	Stack string // the stack of a panic, or the traceback of a Python function; else empty
	err   *Error
}

// Error is the message.
func (e *TaskError) Error() string { return e.err.Error() }

// Is matches what the error itself does.
func (e *TaskError) Is(target error) bool { return e.err.Is(target) }

// Unwrap gives the causes.
func (e *TaskError) Unwrap() []error { return e.err.Unwrap() }

// task gives the error as one of a task, or nil.
func (e *Error) task() *TaskError {
	switch e.Code {
	case CodeTaskFailed:
	case CodeWorkerCrashed, CodeOutOfMemory, CodeDeadline, CodeCancelled, CodeReturnMismatch:
		if e.Task == "" {
			return nil
		}
	default:
		return nil
	}
	return &TaskError{Name: e.Name, Task: e.Task, Stack: e.Stack, err: e}
}
