package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiOf lists what a package exports, a line for each name: functions and methods with their types, fields, constants, variables. A line that
// is gone, or is another, may break a program; one that is new does not, but in an interface that a program can implement.
func apiOf(p *types.Package, without map[string]bool) []string {
	l := &lister{pkg: p, without: without}
	for _, name := range p.Scope().Names() {
		if !token.IsExported(name) || without[name] {
			continue
		}
		full := p.Name() + "." + name
		switch o := p.Scope().Lookup(name).(type) {
		case *types.Const:
			l.add("const %s %s", full, l.typ(o.Type()))
		case *types.Var:
			l.add("var %s %s", full, l.typ(o.Type()))
		case *types.Func:
			l.add("func %s%s", full, l.signature(o.Signature()))
		case *types.TypeName:
			l.typeName(name, o)
		}
	}
	return l.out
}

type lister struct {
	pkg     *types.Package
	without map[string]bool
	out     []string
}

func (l *lister) add(format string, args ...any) { l.out = append(l.out, fmt.Sprintf(format, args...)) }

func (l *lister) typ(t types.Type) string { return types.TypeString(t, (*types.Package).Name) }

// signature leaves the names of parameters out: a program does not depend on them.
func (l *lister) signature(s *types.Signature) string {
	bare := func(of *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range of.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	text := l.typ(types.NewSignatureType(nil, nil, nil, bare(s.Params()), bare(s.Results()), s.Variadic()))
	return l.typeParams(s.TypeParams()) + strings.TrimPrefix(text, "func")
}

func (l *lister) typeParams(of *types.TypeParamList) string {
	if of.Len() == 0 {
		return ""
	}
	var all []string
	for p := range of.TypeParams() {
		all = append(all, p.Obj().Name()+" "+l.typ(p.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// typeName lists a type with what it has. An alias of a type that the runtime keeps to itself has that one's.
func (l *lister) typeName(name string, o *types.TypeName) {
	full := l.pkg.Name() + "." + name
	t, params, alias := o.Type(), (*types.TypeParamList)(nil), ""
	if a, ok := t.(*types.Alias); ok {
		params, alias = a.TypeParams(), "= "+l.typ(a.Rhs())+" "
		t = types.Unalias(a)
	}
	if n, ok := t.(*types.Named); ok && params.Len() == 0 && alias == "" {
		params = n.TypeParams()
	}
	head := "type " + full + l.typeParams(params) + " " + alias
	switch u := t.Underlying().(type) {
	case *types.Struct:
		l.add("%sstruct", head)
		for f := range u.Fields() {
			if f.Exported() && !l.without[name+"."+f.Name()] {
				l.add("field %s.%s %s", full, f.Name(), l.typ(f.Type()))
			}
		}
	case *types.Interface:
		l.add("%s%s", head, l.iface(u))
		for m := range u.Methods() {
			if m.Exported() {
				l.add("method %s.%s%s", full, m.Name(), l.signature(m.Signature()))
			}
		}
		return
	default:
		l.add("%s%s", head, l.typ(u))
	}
	values := types.NewMethodSet(t)
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		f := m.Obj().(*types.Func)
		if !f.Exported() || l.without[name+"."+f.Name()] {
			continue
		}
		kind := "method"
		if values.Lookup(f.Pkg(), f.Name()) == nil {
			kind = "ptrmethod"
		}
		l.add("%s %s.%s%s", kind, full, f.Name(), l.signature(m.Type().(*types.Signature)))
	}
}

// iface names the methods of an interface that a program can implement: one more breaks it.
func (l *lister) iface(u *types.Interface) string {
	var names []string
	for m := range u.Methods() {
		if !m.Exported() {
			return "interface, not for others to implement"
		}
		names = append(names, m.Name())
	}
	if u.NumEmbeddeds() > 0 && !u.IsMethodSet() {
		return l.typ(u) // a constraint
	}
	slices.Sort(names)
	return "interface{" + strings.Join(names, "; ") + "}"
}

// experimental gives the names of a package whose comment has a paragraph that begins with "Experimental:": functions, types with all
// that they have, and as T.M methods.
func experimental(t *testing.T, p *pkg) map[string]bool {
	t.Helper()
	out := make(map[string]bool)
	for _, file := range p.GoFiles {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		note(f, out)
	}
	return out
}

func note(f *ast.File, out map[string]bool) {
	marked := func(doc *ast.CommentGroup) bool { return strings.Contains("\n"+doc.Text(), "\nExperimental:") }
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			if marked(d.Doc) {
				out[name] = true
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if marked(d.Doc) || marked(s.Doc) {
						out[s.Name.Name] = true
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if marked(d.Doc) || marked(s.Doc) {
							out[n.Name] = true
						}
					}
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// What the list has of a package, and what it leaves out.
func TestTheListOfAnAPI(t *testing.T) {
	const source = `package x

import "io"

const C = 3
type E uint8
const E1 E = 1
var V io.Reader
var hidden int
func F[T any](a int, more ...T) (n int, err error) { return 0, nil }

// G is new.
//
// Experimental: it may go.
func G() {}

type S struct { A int; b int; Inner }
func (s S) M() {}
func (s *S) P(x func(name string)) {}

// N is new.
//
// Experimental: it may go.
func (s *S) N() {}
func (s *S) hidden() {}

type Inner struct{ Z bool }
func (Inner) Up() {}

type Shut interface { shut() }
type Open interface { Read(p []byte) int; io.Closer }
type Number interface { ~int | ~float64 }
type secret struct { Shown string }
func (secret) Says() string { return "" }
type Alias = secret
type G2[A any] struct { Of A }
func (g G2[A]) Get() A { return g.Of }
`
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: stub{}}
	p, err := conf.Check("x", fset, []*ast.File{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	without := make(map[string]bool)
	note(f, without)
	got := apiOf(p, without)
	slices.Sort(got)
	want := strings.Split(strings.TrimSpace(`
const x.C untyped int
const x.E1 x.E
field x.Alias.Shown string
field x.G2.Of A
field x.Inner.Z bool
field x.S.A int
field x.S.Inner x.Inner
func x.F[T any](int, ...T) (int, error)
method x.Alias.Says() string
method x.G2.Get() A
method x.Inner.Up()
method x.Open.Close() error
method x.Open.Read([]byte) int
method x.S.M()
method x.S.Up()
ptrmethod x.S.P(func(name string))
type x.Alias = x.secret struct
type x.E uint8
type x.G2[A any] struct
type x.Inner struct
type x.Number interface{~int | ~float64}
type x.Open interface{Close; Read}
type x.S struct
type x.Shut interface, not for others to implement
var x.V io.Reader`), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// stub is a package io with two interfaces, so that the test needs no compiled library.
type stub struct{}

func (stub) Import(string) (*types.Package, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "io.go", "package io\ntype Reader interface{ Read(p []byte) (int, error) }\ntype Closer interface{ Close() error }", 0)
	if err != nil {
		return nil, err
	}
	return (&types.Config{}).Check("io", fset, []*ast.File{f}, nil)
}
