package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"html/template"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// public are the folders of the packages that programs import.
var public = []string{".", "mobulatest", "chaos", "arrowipc", "graph/spec"}

// reference is the reference of one package.
type reference struct {
	path string // to import it by
	body template.HTML
}

// referenceOf reads a package below root and writes what "go doc -all" would, as HTML.
func referenceOf(root, folder string) (*reference, error) {
	dir := filepath.Join(root, filepath.FromSlash(folder))
	b, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	importPath := strings.TrimSuffix("mobula/"+folder, "/.")
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range append(append(b.GoFiles, b.TestGoFiles...), b.XTestGoFiles...) { // tests have the examples
		f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, importPath)
	if err != nil {
		return nil, err
	}
	w := &refWriter{p: p, fset: fset, printer: p.Printer()}
	w.printer.DocLinkURL = linkOf(importPath)
	w.head(1, "package "+p.Name, "")
	w.printf("<p><code>import %q</code></p>\n", importPath)
	w.text(p.Doc)
	w.examples(p.Examples)
	w.values("Constants", p.Consts)
	w.values("Variables", p.Vars)
	if len(p.Funcs) > 0 {
		w.head(2, "Functions", "functions")
		w.funcs(p.Funcs)
	}
	if len(p.Types) > 0 {
		w.head(2, "Types", "types")
	}
	for _, t := range p.Types {
		w.head(3, "type "+t.Name, t.Name)
		w.decl(t.Decl)
		w.text(t.Doc)
		w.examples(t.Examples)
		w.values("", append(t.Consts, t.Vars...))
		w.funcs(t.Funcs)
		w.funcs(t.Methods)
	}
	if w.err != nil {
		return nil, fmt.Errorf("%s: %w", importPath, w.err)
	}
	return &reference{importPath, template.HTML(w.out.String())}, nil //nolint:gosec // made of our own source
}

type refWriter struct {
	p       *doc.Package
	printer *comment.Printer
	fset    *token.FileSet
	out     bytes.Buffer
	err     error
}

// linkOf gives where a name in a comment of a package leads: into a reference of ours, or to that of all Go.
func linkOf(from string) func(*comment.DocLink) string {
	return func(l *comment.DocLink) string {
		name := l.Name
		if l.Recv != "" {
			name = strings.TrimPrefix(l.Recv, "*") + "." + l.Name
		}
		if l.ImportPath == "" || l.ImportPath == from {
			return "#" + name
		}
		if folder, ok := strings.CutPrefix(l.ImportPath, "mobula/"); ok && slices.Contains(public, folder) || l.ImportPath == "mobula" {
			return path.Base(refOf(l.ImportPath)) + "#" + name
		}
		return "https://pkg.go.dev/" + l.ImportPath + "#" + name
	}
}

func (w *refWriter) printf(layout string, args ...any) { fmt.Fprintf(&w.out, layout, args...) }

func (w *refWriter) head(level int, text, id string) {
	w.printf("<h%d id=%q>%s</h%d>\n", level, id, template.HTMLEscapeString(text), level)
}

func (w *refWriter) text(s string) { w.out.Write(w.printer.HTML(w.p.Parser().Parse(s))) }

func (w *refWriter) decl(n ast.Node) {
	var b bytes.Buffer
	if err := format.Node(&b, w.fset, n); err != nil {
		w.err = err
	}
	w.printf("<pre><code>%s</code></pre>\n", template.HTMLEscapeString(b.String()))
}

func (w *refWriter) values(title string, vs []*doc.Value) {
	if len(vs) > 0 && title != "" {
		w.head(2, title, strings.ToLower(title))
	}
	for _, v := range vs {
		w.decl(v.Decl)
		w.text(v.Doc)
	}
}

func (w *refWriter) funcs(fs []*doc.Func) {
	for _, f := range fs {
		title, id := "func "+f.Name, f.Name
		if f.Recv != "" {
			title, id = fmt.Sprintf("func (%s) %s", f.Recv, f.Name), nameOf(f.Recv)+"."+f.Name
		}
		w.head(4, title, id)
		w.decl(f.Decl)
		w.text(f.Doc)
		w.examples(f.Examples)
	}
}

// nameOf is the name of a receiver's type, without its star and parameters.
func nameOf(receiver string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(receiver, "*"), "[")
	return name
}

func (w *refWriter) examples(es []*doc.Example) {
	for _, e := range es {
		w.printf("<details><summary>Example %s</summary>\n", template.HTMLEscapeString(e.Suffix))
		w.text(e.Doc)
		w.decl(e.Code)
		if e.Output != "" {
			w.printf("<p>Output:</p>\n<pre>%s</pre>\n", template.HTMLEscapeString(e.Output))
		}
		w.printf("</details>\n")
	}
}
