//go:build !race

package lint

import (
	"fmt"
	"go/token"
	"go/types"
	"strings"
)

// surface writes a program that names every function and method that a user's program can call of some packages: it stands for all users. What is
// generic is named with a type that its constraint takes.
func surface(pkgs []*types.Package) string {
	var imports, uses strings.Builder
	for i, p := range pkgs {
		s := &surfaced{as: fmt.Sprintf("p%d", i)}
		for _, name := range p.Scope().Names() {
			if token.IsExported(name) {
				s.object(p.Scope().Lookup(name))
			}
		}
		if len(s.uses) == 0 {
			s.as = "_" // what it registers is reached
		}
		fmt.Fprintf(&imports, "\t%s %q\n", s.as, p.Path())
		for _, use := range s.uses {
			fmt.Fprintf(&uses, "\t%s,\n", use)
		}
	}
	return "package main\n\nimport (\n" + imports.String() + ")\n\nvar uses = []any{\n" + uses.String() + "}\n\nfunc main() {}\n"
}

type surfaced struct {
	as   string
	uses []string
}

func (s *surfaced) object(o types.Object) {
	switch o := o.(type) {
	case *types.Func:
		if args, ok := arguments(o.Signature().TypeParams()); ok {
			s.uses = append(s.uses, s.as+"."+o.Name()+args)
		}
	case *types.TypeName:
		s.methods(o)
	}
}

// methods names those of a type, also where it is the alias of one that the runtime keeps to itself.
func (s *surfaced) methods(o *types.TypeName) {
	t, params := o.Type(), (*types.TypeParamList)(nil)
	switch n := t.(type) {
	case *types.Alias:
		params = n.TypeParams()
	case *types.Named:
		params = n.TypeParams()
	}
	if types.IsInterface(t) {
		return
	}
	args, ok := arguments(params)
	if !ok {
		return
	}
	set := types.NewMethodSet(types.NewPointer(types.Unalias(t)))
	for m := range set.Methods() {
		if m.Obj().Exported() {
			s.uses = append(s.uses, "(*"+s.as+"."+o.Name()+args+")."+m.Obj().Name())
		}
	}
}

// arguments gives types for type parameters; it is false where none is known to do.
func arguments(params *types.TypeParamList) (string, bool) {
	if params.Len() == 0 {
		return "", true
	}
	var args []string
	for p := range params.TypeParams() {
		arg, ok := argument(p.Constraint())
		if !ok {
			return "", false
		}
		args = append(args, arg)
	}
	return "[" + strings.Join(args, ", ") + "]", true
}

func argument(constraint types.Type) (string, bool) {
	u, ok := constraint.Underlying().(*types.Interface)
	switch {
	case !ok:
		return "", false
	case types.Identical(constraint, types.Universe.Lookup("error").Type()):
		return "error", true
	case u.NumMethods() > 0:
		return "", false
	case types.Satisfies(types.Typ[types.Int], u):
		return "int", true
	}
	for e := range u.EmbeddedTypes() {
		if terms, ok := e.(*types.Union); ok {
			if b, ok := terms.Term(0).Type().(*types.Basic); ok {
				return b.Name(), true
			}
		}
	}
	return "", false
}
