package errs

import "reflect"

// The public package has types of its own for what a program asks an error for. Here are only their makers.
var shown []shownType // written while packages initialise

type shownType struct {
	typ reflect.Type
	as  func(e *Error, target any) bool
}

// Show has errors.As find an *Error as a T, where as gives one. A T that comes back to From gives its *Error by a method As.
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

// As gives the error as one of the types that Show was told of.
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
