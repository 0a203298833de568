package errs

import (
	"reflect"

	"mobula/internal/ids"
)

// References finds the references to objects inside values, and makes decoded ones live. This package has no
// reference types.
type References interface {
	// Find gives the references in a value.
	Find(v reflect.Value) ([]ids.ObjectID, error)
	// Attach makes the references in a decoded value live; held is the result of Hold's function.
	Attach(v reflect.Value, held any) error
	// LeftOut tells what would not be encoded of the values of a type; nil if nothing.
	LeftOut(t reflect.Type) error
}

// AllRefs gives the references in e and in its causes, with duplicates. A nil e has none.
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

// Hold gives a copy of e for the program of this process that keeps the objects it refers to: it calls hold with them, and keeps the
// result as long as the copy lives. It returns an error without references unchanged.
func (e *Error) Hold(hold func(refs []ids.ObjectID) any) *Error {
	refs := e.AllRefs()
	if len(refs) == 0 {
		return e
	}
	return e.with(hold(refs))
}

// Bare gives a copy that holds nothing, for other processes.
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
