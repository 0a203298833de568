package errs

import (
	"context"
	"fmt"
	"reflect"
	"sync"
)

var users struct { // guarded by mu; written while packages initialise
	mu     sync.RWMutex
	byName map[string]error // sentinels
	types  map[string]*userType
	byType map[reflect.Type]*userType
}

// RegisterSentinel lets an application's sentinel cross processes: an error that matches it on one side matches it
// on the other. Both sides register the same name, while their packages initialise. It panics if the name is taken
// by another sentinel, or if the sentinel cannot be compared with ==: errors.Is could never find it.
func RegisterSentinel(name string, sentinel error) {
	if sentinel == nil || !reflect.TypeOf(sentinel).Comparable() {
		panic(fmt.Sprintf("errs: sentinel %q of type %T cannot be compared", name, sentinel))
	}
	users.mu.Lock()
	defer users.mu.Unlock()
	if old, ok := users.byName[name]; ok && old != sentinel || users.types[name] != nil {
		panic(fmt.Sprintf("errs: sentinel name %q is registered twice", name))
	}
	if users.byName == nil {
		users.byName = make(map[string]error)
	}
	users.byName[name] = sentinel
}

func userSentinel(name string) error {
	users.mu.RLock()
	defer users.mu.RUnlock()
	return users.byName[name]
}

const (
	maxDepth = 12   // of a chain of causes, less than a message between processes has; of deeper ones the text is in the message, and what they match is kept
	maxBelow = 1000 // errors that are looked at below that depth: Unwrap is the program's, and may have no end
)

// From turns any error into one that can cross processes. It keeps every sentinel of this package and every
// registered one that the error matches, and every error of a registered type. From(nil) is nil. The error's methods are the program's code:
// where one panics, the text is all that is kept.
func From(err error) *Error {
	left := maxBelow
	return from(err, 0, &left)
}

func from(err error, depth int, left *int) (out *Error) {
	if err == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			out = &Error{Msg: Text(err)}
		}
	}()
	switch e := err.(type) {
	case *Error:
		return e
	case interface{ As(target any) bool }: // perhaps one of the types registered with Show
		if shows(reflect.TypeOf(err)) {
			var own *Error
			if e.As(&own) {
				return own
			}
		}
	}
	out = &Error{Msg: Text(err)}
	inner := causes(err)
	if t := typeOf(err); t != nil {
		if data, refs, ok, cause := t.encode(err); ok {
			out.Code, out.Name, out.Data, out.Refs = CodeUser, t.name, data, refs
			if cause != nil {
				inner = []error{cause}
			}
		}
	}
	if out.Code == CodeUnknown {
		out.Code, out.Name = codeOf(err)
	}
	switch {
	case depth < maxDepth:
		for _, c := range inner {
			if w := from(c, depth+1, left); w != nil && (w.Code != CodeUnknown || len(w.Cause) > 0 || out.Data != nil) {
				out.Cause = append(out.Cause, w)
			}
		}
	case depth == maxDepth:
		out.Cause = below(inner, left)
	}
	return out
}

// below gives what errors deep in a chain match, without the errors between: each as a cause of its own. left is how many may be looked at.
func below(queue []error, left *int) (out []*Error) {
	for ; len(queue) > 0 && *left > 0 && len(out) < maxDepth; *left-- {
		err := queue[0]
		queue = queue[1:]
		if err == nil {
			continue
		}
		if w := from(err, maxDepth+1, left); w.Code != CodeUnknown || len(w.Cause) > 0 {
			out = append(out, w)
		} else {
			queue = append(queue, causes(err)...)
		}
	}
	return out
}

// Text is the text of an error, or of another value that a panic was given. It does not panic where that has none: a nil pointer of an
// error's type, say.
func Text(v any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("a value of type %T, whose text cannot be had: the method that makes it panics", v)
		}
	}()
	if err, ok := v.(error); ok {
		return err.Error()
	}
	if _, ok := v.(fmt.Stringer); !ok && endless(reflect.ValueOf(v), 0) {
		return fmt.Sprintf("a value of type %T, whose text cannot be had: it contains itself", v)
	}
	return fmt.Sprint(v)
}

const maxNested = 100 // in a value whose text is made

// endless tells whether a value contains itself by maps and slices, which fmt follows until the stack overflows, or may as well: it is nested deeper
// than any that is shown. Pointers inside a value are shown as addresses.
func endless(v reflect.Value, depth int) bool {
	if depth > maxNested {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		return depth == 0 && !v.IsNil() && endless(v.Elem(), 1)
	case reflect.Interface:
		return !v.IsNil() && endless(v.Elem(), depth) // of which no value is an interface
	case reflect.Struct:
		for _, f := range v.Fields() {
			if endless(f, depth+1) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		if scalar(v.Type().Elem()) {
			return false
		}
		for i := range v.Len() {
			if endless(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if endless(it.Value(), depth+1) { // a key cannot contain itself
				return true
			}
		}
	}
	return false
}

// scalar tells whether values of a type contain no others.
func scalar(t reflect.Type) bool { return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String }

func causes(err error) []error {
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if c := u.Unwrap(); c != nil {
			return []error{c}
		}
	case interface{ Unwrap() []error }:
		return u.Unwrap()
	}
	return nil
}

// codeOf checks only this error, not the errors that it wraps: those become causes.
func codeOf(err error) (Code, string) {
	for c := range table {
		if s := table[c].sentinel; s != nil && s == err {
			return Code(c), ""
		}
	}
	switch err {
	case context.Canceled:
		return CodeCancelled, ""
	case context.DeadlineExceeded:
		return CodeDeadline, ""
	}
	users.mu.RLock()
	defer users.mu.RUnlock()
	for name, s := range users.byName {
		if s == err {
			return CodeUser, name
		}
	}
	return CodeUnknown, ""
}
