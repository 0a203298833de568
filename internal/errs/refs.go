package errs

import (
	"reflect"

	"mobula/internal/ids"
)

// References finds and revives the references to objects inside values. This package knows none.
type References interface {
	// Find gives the references in a value.
	Find(v reflect.Value) ([]ids.ObjectID, error)
	// Attach makes those in a decoded value live; held is what Hold was given.
	Attach(v reflect.Value, held any) error
}

// AllRefs gives the references in e and in what it wraps, one as often as it is there. A nil e has none.
func (e *Error) AllRefs() []ids.ObjectID {
	if e == nil {
		return nil
	}
	out := e.Refs[:len(e.Refs):len(e.Refs)]
	for _, c := range e.Cause {
		if in := c.AllRefs(); len(out) == 0 {
			out = in
		} else {
			out = append(out, in...)
		}
	}
	return out
}

// Hold gives a copy of e, for the program of this process, that holds the objects it has references to as long as the program has it:
// hold is given them, and what it gives lives as long as the copy. An error without references is given as it is.
func (e *Error) Hold(hold func(refs []ids.ObjectID) any) *Error {
	refs := e.AllRefs()
	if len(refs) == 0 {
		return e
	}
	return e.with(hold(refs))
}

// Bare gives a copy that holds nothing, for others.
func (e *Error) Bare() *Error {
	if len(e.AllRefs()) == 0 {
		return e
	}
	return e.with(nil)
}

func (e *Error) with(held any) *Error {
	out := *e
	out.held = nil
	if len(e.Refs) > 0 {
		out.held = held
	}
	out.Cause = make([]*Error, 0, len(e.Cause))
	for _, c := range e.Cause {
		if c != nil {
			out.Cause = append(out.Cause, c.with(held))
		}
	}
	if len(out.Cause) == 0 {
		out.Cause = nil
	}
	return &out
}
