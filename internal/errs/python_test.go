package errs

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

func TestAPythonExceptionIsToldByItsClasses(t *testing.T) {
	cause := &Error{Code: CodePython, Name: "UnicodeDecodeError,UnicodeError,ValueError,Exception", Msg: "UnicodeDecodeError: no"}
	err := error(&Error{Code: CodeTaskFailed, Name: "py:m.f", Stack: "Traceback ...", Cause: []*Error{cause}})
	for _, err := range []error{err, fmt.Errorf("in a task: %w", err), From(fmt.Errorf("in a task: %w", err))} {
		var p *shownException
		if !errors.As(err, &p) || !slices.Equal(p.Classes, []string{"UnicodeDecodeError", "UnicodeError", "ValueError", "Exception"}) {
			t.Fatalf("%v: %+v", err, p)
		}
		if p.Traceback != "Traceback ..." || p.Error() != cause.Msg || !errors.Is(err, ErrPython) {
			t.Errorf("%v: %+v", err, p)
		}
		if again := From(p); again.Code != CodePython || again.Name != cause.Name || again.Msg != cause.Msg {
			t.Errorf("sent on it is %+v", again)
		}
	}
	var p *shownException
	if !errors.As(error(cause), &p) || p.Classes[0] != "UnicodeDecodeError" {
		t.Errorf("without its task: %+v", p)
	}
	for _, err := range []error{io.EOF, New(CodeTaskFailed, "x"), From(fmt.Errorf("a: %w", ErrStoreFull))} {
		if errors.As(err, &p) {
			t.Errorf("%v passes for an exception", err)
		}
	}
}
