package call

import (
	"regexp"

	"mobula/internal/errs"
	"mobula/wire"
)

// A worker imports a Python function or class by its name. Nothing is registered.

// NewPython makes the Function of a Python function or class. If Python cannot have such a name, every call gives
// that error.
func NewPython(module, name string, s Shape, base Options) *Function {
	f := New(wire.PythonPrefix+module+"."+name, s, base)
	if !IsModule(module) || !IsModule(name) {
		f.err = errs.New(errs.CodeInvalid, "Python function %q of module %q: want names such as \"mean\" and \"app.stats\"", name, module)
	}
	return f
}

// NewPythonMethod is NewPython for a method of a class.
func NewPythonMethod(class *Function, name string, s Shape, base Options) *Function {
	f := New(class.name+"."+name, s, base)
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

// IsModule tells whether Python can import something of that name.
func IsModule(name string) bool { return dotted.MatchString(name) }

var (
	identifier = regexp.MustCompile(`^[\pL_][\pL\pN_]*$`)
	dotted     = regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
)
