package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// goTypes are the types of the packages that messages are made of, by qualified name: "wire.Hello".
type goTypes struct {
	structs map[string][]goField
	named   map[string]string // of numbers and lists: what they are made of
}

type goField struct {
	name, typ string // the type is qualified
	embedded  bool
	line      string // where it stands
}

// packages have the structs and the named numbers and lists.
var packages = []string{
	"wire", "internal/errs", "internal/ids", "raylet/owner/record", "raylet/owner/task", "raylet/owner/actor",
	"raylet/internode", "raylet/owner", "raylet/cluster", "raylet/sched", "objectstore",
}

func readStructs(root string) (*goTypes, error) {
	t := &goTypes{structs: make(map[string][]goField), named: make(map[string]string)}
	for _, dir := range packages {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "_gen.go") {
				continue
			}
			if err := t.read(path); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func (t *goTypes) read(path string) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := f.Name.Name
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			spec := spec.(*ast.TypeSpec)
			name := pkg + "." + spec.Name.Name
			switch x := spec.Type.(type) {
			case *ast.Ident:
				t.named[name] = x.Name
			case *ast.ArrayType:
				t.named[name] = qualify(pkg, x)
			case *ast.StructType:
				t.structs[name] = []goField{}
				for _, fl := range x.Fields.List {
					of := goField{typ: qualify(pkg, fl.Type), line: fmt.Sprintf("%s:%d", filepath.Base(path), set.Position(fl.Pos()).Line)}
					if len(fl.Names) == 0 {
						of.embedded = true
						t.structs[name] = append(t.structs[name], of)
					}
					for _, n := range fl.Names {
						of.name = n.Name
						t.structs[name] = append(t.structs[name], of)
					}
				}
			}
		}
	}
	return nil
}

// qualify writes a type with the package of each name in it.
func qualify(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + qualify(pkg, e.X)
	case *ast.ArrayType:
		if e.Len != nil {
			return "[" + types.ExprString(e.Len) + "]" + qualify(pkg, e.Elt)
		}
		return "[]" + qualify(pkg, e.Elt)
	case *ast.Ident:
		if e.IsExported() {
			return pkg + "." + e.Name
		}
	}
	return types.ExprString(e)
}

// number is what a numeric type is made of.
func (t *goTypes) number(typ string) string {
	if of, ok := t.named[typ]; ok {
		typ = of
	}
	if typ == "byte" {
		return "uint8"
	}
	return typ
}

// A column is a field of the table: one of the schema, and where it lies in Go.
type column struct {
	protoreflect.FieldDescriptor
	path   string // from the message's struct: "Spec.ID"
	typ    string // of what lies there, qualified
	in     string // the type of the struct right around it
	choice bool   // what lies there is an interface, of which this message is one
}

// num is the field's number.
func (c column) num() int { return int(c.Number()) }

// columns binds the fields of a message to a Go struct. With all each field of the struct must be bound, but those that
// cannot be sent.
func (t *goTypes) columns(m protoreflect.MessageDescriptor, typ string, all bool) ([]column, error) {
	if _, ok := t.structs[typ]; !ok {
		return nil, at(m, "message %s has no struct %s in Go", m.Name(), typ)
	}
	var out []column
	bound := make(map[string]bool)
	for i := range m.Fields().Len() {
		c := column{FieldDescriptor: m.Fields().Get(i)}
		if of := c.ContainingOneof(); of != nil {
			c.path, _, c.in = t.find(typ, string(of.Name()))
			c.choice = c.path != ""
		}
		if c.choice {
			c.typ = choiceType(c.Message())
		} else if c.path, c.typ, c.in = t.find(typ, string(c.Name())); c.path == "" {
			return nil, at(c.FieldDescriptor, "field %s of message %s has no field in the Go struct %s", c.Name(), m.Name(), typ)
		}
		if of := t.named[c.typ]; strings.HasPrefix(of, "[]") {
			c.typ = of
		}
		bound[c.path] = true
		out = append(out, c)
	}
	if all {
		for _, f := range t.structs[typ] {
			if ast.IsExported(f.name) && f.typ != "*os.File" && !bound[f.name] {
				return nil, fmt.Errorf("%s: field %s of %s is in no field of message %s of %s", f.line, f.name, typ, m.Name(), m.ParentFile().Path())
			}
		}
	}
	return out, nil
}

// choiceType is the struct of a message that is one of several in a field: the message around it has the name of its package.
func choiceType(m protoreflect.MessageDescriptor) string {
	return strings.ToLower(string(m.Parent().Name())) + "." + string(m.Name())
}

// find gives the path to the field that a schema calls name, its type, and the struct right around it. Of a field
// inside another the name has both: spec_id is Spec.ID.
func (t *goTypes) find(typ, name string) (path, of, in string) {
	typ = strings.TrimPrefix(typ, "*")
	for _, f := range t.structs[typ] {
		if f.embedded {
			if path, of, in := t.find(f.typ, name); path != "" {
				return path, of, in
			}
		} else if snake(f.name) == name {
			return f.name, f.typ, typ
		}
	}
	for _, f := range t.structs[typ] {
		if rest, ok := strings.CutPrefix(name, snake(f.name)+"_"); ok && !f.embedded {
			if path, of, in := t.find(f.typ, rest); path != "" {
				return f.name + "." + path, of, in
			}
		}
	}
	return "", "", ""
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)

// snake is a Go name as a schema writes it.
func snake(name string) string {
	return strings.ToLower(capital.ReplaceAllString(strings.ReplaceAll(name, "IDs", "Ids"), "${1}${3}_${2}${4}"))
}
