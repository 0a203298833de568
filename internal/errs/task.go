package errs

// OfTask tells whether the error is that of a failed task: its function returned an error or panicked, its process died or was killed
// for memory, its time ran out, or it was cancelled. Errors of actors, of objects and of the runtime are not.
func (e *Error) OfTask() bool {
	switch e.Code {
	case CodeTaskFailed:
		return true
	case CodeWorkerCrashed, CodeOutOfMemory, CodeDeadline, CodeCancelled, CodeReturnMismatch:
		return e.Task != ""
	}
	return false
}
