package errs

// OfTask tells whether the error is the end of a task that failed: its function returned an error or panicked, its process died or was
// killed for memory, its time ran out, or it was cancelled. What is wrong with an actor, an object or the runtime is none.
func (e *Error) OfTask() bool {
	switch e.Code {
	case CodeTaskFailed:
		return true
	case CodeWorkerCrashed, CodeOutOfMemory, CodeDeadline, CodeCancelled, CodeReturnMismatch:
		return e.Task != ""
	}
	return false
}
