package errs

import (
	"slices"
	"strings"
)

// PythonError is an exception that a Python function raised, for errors.As.
type PythonError struct {
	// Classes are the exception's class and those it derives from, nearest first; built-in ones without
	// their module: "UnicodeDecodeError", "UnicodeError", "ValueError", "Exception".
	Classes   []string
	Message   string // class and text, as the last line of a traceback
	Traceback string // as Python prints it, from the user's function on; may be empty
}

// Error is the message.
func (e *PythonError) Error() string { return e.Message }

// IsA tells whether an except clause of that class would take the exception.
func (e *PythonError) IsA(class string) bool { return slices.Contains(e.Classes, class) }

// As gives the error of a task as a *TaskError, and an exception of a Python function as a *PythonError, with the
// traceback that the failed task's error has.
func (e *Error) As(target any) bool {
	switch p := target.(type) {
	case **TaskError:
		t := e.task()
		if t == nil {
			return false
		}
		*p = t
		return true
	case **PythonError:
		return e.python(p)
	}
	return false
}

func (e *Error) python(p **PythonError) bool {
	cause := e
	if e.Code == CodeTaskFailed && len(e.Cause) > 0 {
		cause = e.Cause[0]
	}
	if cause.Code != CodePython {
		return false
	}
	*p = &PythonError{Classes: strings.Split(cause.Name, ","), Message: cause.Msg}
	if cause != e {
		(*p).Traceback = e.Stack
	}
	return true
}
