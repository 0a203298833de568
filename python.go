package mobula

import (
	"mobula/internal/call"
	"mobula/internal/join"
)

// PythonOption says how Python workers run; see WithPython.
type PythonOption func(*join.Python) error

// WithPython lets the program call Python functions and classes (PythonFunc1, PythonActor1 and their like). Python workers are forked from a
// template process, which has imported what they need, and have the program's working directory. Each runs one task at a time, or one actor.
// The interpreter starts with the first call and must have the package mobula of this release. By default it is the one in MOBULA_PYTHON,
// else that of the virtual environment in VIRTUAL_ENV, else the first python3 in PATH that has the package.
func WithPython(opts ...PythonOption) StartOption {
	return func(c *startConfig) (err error) { c.Python, err = pythonOf(opts); return err }
}

// ConnectPython is WithPython for a program that joins a node. The interpreter's path must mean the same to
// program and node.
func ConnectPython(opts ...PythonOption) ConnectOption {
	return func(c *connectConfig) (err error) { c.Python, err = pythonOf(opts); return err }
}

func pythonOf(opts []PythonOption) (*join.Python, error) {
	p := new(join.Python)
	for _, set := range opts {
		if err := set(p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// PythonInterpreter sets the interpreter: a path, or a name to look for in PATH.
func PythonInterpreter(path string) PythonOption {
	return func(p *join.Python) error {
		if path == "" {
			return invalid("PythonInterpreter: the path is empty")
		}
		p.Interpreter = path
		return nil
	}
}

// PythonPath adds directories to search for modules, before those that the interpreter knows. The program's working directory is
// always searched.
func PythonPath(dirs ...string) PythonOption {
	return func(p *join.Python) error { p.Path = append(p.Path, dirs...); return nil }
}

// PythonPreload names modules that take long to import. They are imported once, before workers are forked, so that workers
// start with them. NumPy is among them where it is installed.
func PythonPreload(modules ...string) PythonOption {
	return func(p *join.Python) error {
		for _, m := range modules {
			if !call.IsModule(m) {
				return invalid("PythonPreload: %q is no module's name", m)
			}
		}
		p.Preload = append(p.Preload, modules...)
		return nil
	}
}
