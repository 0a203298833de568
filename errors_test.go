package mobula

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"mobula/internal/errs"
)

func TestATasksErrorHasItsFields(t *testing.T) {
	own := &errs.Error{Code: errs.CodePanic, Msg: "boom"}
	failed := &errs.Error{Code: errs.CodeTaskFailed, Name: "f", Task: "1", Stack: "main.go:3", Msg: "boom", Cause: []*errs.Error{own}}
	var te *TaskError
	if err := fmt.Errorf("wrapped: %w", failed); !errors.As(err, &te) || te.Name != "f" || te.Task != "1" || te.Stack != "main.go:3" {
		t.Fatalf("%+v", te)
	}
	if te.Error() != failed.Error() || !errors.Is(te, ErrTaskFailed) || !errors.Is(te, ErrPanic) || errors.Is(te, ErrDeadline) {
		t.Errorf("%v", te)
	}
	if again := errs.From(te); again != failed {
		t.Errorf("sent on it is %+v", again)
	}
	if errors.As(error(errs.New(errs.CodeActorDied, "x")), &te) {
		t.Error("an actor's error is one of a task")
	}
}

func TestAPythonErrorHasItsFields(t *testing.T) {
	cause := &errs.Error{Code: errs.CodePython, Name: "UnicodeDecodeError,UnicodeError,ValueError,Exception", Msg: "UnicodeDecodeError: no"}
	err := error(&errs.Error{Code: errs.CodeTaskFailed, Name: "py:m.f", Stack: "Traceback ...", Cause: []*errs.Error{cause}})
	var py *PythonError
	if !errors.As(err, &py) || !py.IsA("ValueError") || !py.IsA("UnicodeDecodeError") || py.IsA("KeyError") {
		t.Fatalf("%+v", py)
	}
	if py.Traceback != "Traceback ..." || py.Error() != cause.Msg {
		t.Errorf("%+v", py)
	}
	if again := errs.From(py); again.Code != cause.Code || again.Name != cause.Name || again.Msg != cause.Msg {
		t.Errorf("sent on it is %+v", again)
	}
	for _, register := range []func(){func() { RegisterErrorType[*TaskError]("test/own") }, func() { RegisterErrorType[*PythonError]("test/own") }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("one of the runtime's own types was registered")
				}
			}()
			register()
		}()
	}
}

type stamped struct {
	time.Time
	Zone string
}

func (stamped) Error() string { return "stamped" }

type stamps struct{ All map[string]*stamped }

func (stamps) Error() string { return "stamps" }

type twice struct {
	A int `json:"n"`
	B int `cbor:"n"`
}

func (twice) Error() string { return "twice" }

// A type of which a field would be left out is refused when it is registered, with the field's name.
func TestErrorTypesThatWouldLeaveFieldsOutAreRefused(t *testing.T) {
	for field, register := range map[string]func(){
		".Zone":       func() { RegisterErrorType[*stamped]("test/stamped") },
		".All[].Zone": func() { RegisterErrorType[stamps]("test/stamps") },
		".B":          func() { RegisterErrorType[twice]("test/twice") },
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), field) {
					t.Errorf("%s: %v", field, p)
				}
			}()
			register()
		}()
	}
}

// errors.As for the runtime's own error type finds no error of another type.
func TestErrorsAsFindsNoOtherType(t *testing.T) {
	for _, err := range []error{&TaskError{err: errs.New(errs.CodeTaskFailed, "x")}, &PythonError{}} {
		var other *reflect.ValueError
		if errors.As(err, &other) {
			t.Errorf("%T passes for another", err)
		}
	}
}
