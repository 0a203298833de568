package mobula

import (
	"regexp"

	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/wire"
)

// This file is what the handles of Python functions and classes (zz_python.go) have of their own: a name, by
// which a worker imports them. Nothing is registered.

// pythonFunc makes what the handles of a Python function or class share. Where its name can be none of Python's every
// call says so.
func pythonFunc[O any](module, name string, kind wire.TaskKind, in, out []*codec.Plan, returns int32, defaultOpts []O) *function {
	f := newCallee(wire.PythonPrefix+module+"."+name, kind, in, out, returns, defaultOpts)
	if !dotted.MatchString(module) || !dotted.MatchString(name) {
		f.err = errs.New(errs.CodeInvalid, "Python function %q of module %q: want names such as \"mean\" and \"app.stats\"", name, module)
	}
	return f
}

// pythonMethod is pythonFunc for a method of a class.
func pythonMethod[T, O any](actor ActorType[T], name string, in, out []*codec.Plan, returns int32, defaultOpts []O) *function {
	class := actor.class(nil)
	f := newCallee(class.name+"."+name, wire.TaskActorCall, in, out, returns, defaultOpts)
	switch {
	case wire.Language(class.name) != wire.LangPython:
		f.err = errs.New(errs.CodeInvalid, "method %q: %q is no Python class; use RegisterMethod", name, class.name)
	case class.err != nil:
		f.err = class.err
	case !identifier.MatchString(name):
		f.err = errs.New(errs.CodeInvalid, "method %q of %s: want a name such as \"predict\"", name, class.name)
	}
	return f
}

var (
	identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)
	dotted     = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
)
