package errs

import "reflect"

// The public package has types of its own for errors.As. This file only has the functions that make them.
var shown []shownType // written while packages initialise

type shownType struct {
	typ reflect.Type
	as  func(e *Error, target any) bool
}

// Show lets errors.As find an *Error as a T, if as makes one. From gets the *Error of a T by the T's method As.
func Show[T error](as func(e *Error) (T, bool)) {
	shown = append(shown, shownType{reflect.TypeFor[T](), func(e *Error, target any) bool {
		p, ok := target.(*T)
		if !ok {
			return false
		}
		v, ok := as(e)
		if ok {
			*p = v
		}
		return ok
	}})
}

// As gives the error as one of the types registered with Show.
func (e *Error) As(target any) bool {
	for i := range shown {
		if shown[i].as(e, target) {
			return true
		}
	}
	return false
}

// shows tells whether t is one of those types.
func shows(t reflect.Type) bool {
	for i := range shown {
		if shown[i].typ == t {
			return true
		}
	}
	return false
}
