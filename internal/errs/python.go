package errs

import "strings"

// Exception is an exception that a Python function raised.
type Exception struct {
	Classes   []string // its class and those it derives from, nearest first; built-in ones without their module
	Message   string   // class and text, as the last line of a traceback
	Traceback string   // may be empty
}

// Exception gives the exception that the error is, or that the task failed with. For a failed task the task's error has the
// traceback.
func (e *Error) Exception() (x Exception, ok bool) {
	cause := e
	if e.Code == CodeTaskFailed && len(e.Cause) > 0 {
		cause = e.Cause[0]
	}
	if cause.Code != CodePython {
		return x, false
	}
	x = Exception{Classes: strings.Split(cause.Name, ","), Message: cause.Msg}
	if cause != e {
		x.Traceback = e.Stack
	}
	return x, true
}

// Raised is the error of an exception, without the traceback, which its task's error has.
func Raised(x Exception) *Error {
	return &Error{Code: CodePython, Name: strings.Join(x.Classes, ","), Msg: x.Message}
}
