package actors

import (
	"errors"
	"fmt"

	"mobula/internal/errs"
)

// Errors of Post, Send and Spawn; match them with errors.Is.
var (
	// ErrStopped: the component has stopped or is stopping; the event was not taken.
	// It is also errs.ErrShutdown.
	ErrStopped = fmt.Errorf("component stopped: %w", errs.ErrShutdown)
	// ErrMailboxFull: twice the mailbox's bound waits; the event was not taken.
	ErrMailboxFull = errors.New("mailbox full")
)

// PanicError says that a core, or code that runs for it, panicked and the core was discarded.
type PanicError struct {
	Kind, Name string // of the component
	Phase      string // "New", "Step", "Do", "Flush" or "start" (an event returned by New)
	Message    string // Go type of the event being stepped; empty if none was
	Value      any    // the value of the panic
	Stack      string
}

func (e *PanicError) Error() string {
	msg := ""
	if e.Message != "" {
		msg = " on " + e.Message
	}
	return fmt.Sprintf("component %s panicked in %s%s: %v", e.Name, e.Phase, msg, e.Value)
}

// Unwrap gives errs.ErrPanic, and the panic's value if it is an error.
func (e *PanicError) Unwrap() []error {
	if err, ok := e.Value.(error); ok {
		return []error{errs.ErrPanic, err}
	}
	return []error{errs.ErrPanic}
}

// PoisonError says that a message was dropped because two cores in a row panicked on it.
type PoisonError struct{ Panic *PanicError }

func (e *PoisonError) Error() string {
	return "message dropped, it made two cores in a row panic: " + e.Panic.Error()
}

// Unwrap gives the second panic.
func (e *PoisonError) Unwrap() error { return e.Panic }

// StopError names the components whose own code had not returned by a stop's deadline. They end without draining
// once it returns.
type StopError struct {
	Names []string
	Cause error // of the context
}

func (e *StopError) Error() string {
	return fmt.Sprintf("components %q did not stop in time (%v): what they run has not returned", e.Names, e.Cause)
}

// Unwrap gives the context's error.
func (e *StopError) Unwrap() error { return e.Cause }

// errGoexit stands for the value of a panic when runtime.Goexit ended a turn.
var errGoexit = errors.New("runtime.Goexit was called")

func (n *node) panicError(phase, message string, v any, stack []byte) *PanicError {
	const maxStack = 8 << 10
	return &PanicError{Kind: n.kind, Name: n.name, Phase: phase, Message: message, Value: v,
		Stack: string(stack[:min(len(stack), maxStack)])}
}
