package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// unit is Go source that is one package: a program, or all other blocks of a page.
type unit struct {
	fset  *token.FileSet
	files []*ast.File
}

// known are the packages that a block may use without an import, by the names that it says.
var known = map[string]string{
	"mobula": "mobula", "chaos": "mobula/chaos", "mobulatest": "mobula/mobulatest", "spec": "mobula/graph/spec", "arrowipc": "mobula/arrowipc",
	"bytes": "bytes", "context": "context", "errors": "errors", "fmt": "fmt", "io": "io", "iter": "iter", "log": "log", "maps": "maps", "math": "math",
	"os": "os", "filepath": "path/filepath", "slices": "slices", "slog": "log/slog", "strings": "strings", "sync": "sync", "testing": "testing", "time": "time",
}

var (
	hidden = regexp.MustCompile(`(?s)^<!-- go\n(.*?)-->\s*$`)
	quoted = regexp.MustCompile(`^<!-- go from (\S+) -->\s*$`)
)

// goOf gives the Go of a page, and what is wrong with it already.
func (t *tree) goOf(p *page) (units []*unit, wrong []string) {
	rest := &unit{fset: token.NewFileSet()}
	from := ""
	for _, b := range p.blocks {
		code, line := b.text, b.line
		if m := quoted.FindStringSubmatch(b.text); b.language == "<!--" && m != nil {
			from = m[1]
			continue
		}
		if m := hidden.FindStringSubmatch(b.text); b.language == "<!--" && m != nil {
			code, line = m[1], b.line+1
		} else if b.language != "go" {
			continue
		}
		if from != "" {
			if err := t.quotation(from, code); err != nil {
				wrong = append(wrong, finding(p, line, "%v", err))
			}
			continue
		}
		u := rest
		if strings.HasPrefix(code, "package ") {
			u = &unit{fset: token.NewFileSet()}
			units = append(units, u)
		}
		f, err := parseSnippet(u.fset, p.path, line, code)
		if err != nil {
			wrong = append(wrong, lineOf(err))
			continue
		}
		u.files = append(u.files, f)
	}
	if len(rest.files) > 0 {
		units = append(units, rest)
	}
	return units, wrong
}

// lineOf is the first of a parser's errors.
func lineOf(err error) string {
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return list[0].Error()
	}
	return err.Error()
}

// statements is what a block of statements stands in.
const statements = "func _(ctx context.Context, c *mobula.Cluster, t *testing.T, m *testing.M) error {\n"

// parseSnippet reads a block as a file of a package: as it is, as declarations, or as statements.
func parseSnippet(fset *token.FileSet, name string, line int, code string) (*ast.File, error) {
	at := fmt.Sprintf("//line %s:%d\n", name, line)
	name = "snippet" // whose folder the line's name is taken to be below
	if strings.HasPrefix(code, "package ") {
		return parser.ParseFile(fset, name, at+code, parser.AllErrors)
	}
	declarations := fmt.Sprintf("package snippets\n%s%s", at, code)
	f, err := parser.ParseFile(token.NewFileSet(), name, declarations, 0)
	if err != nil {
		declarations = "package snippets\n" + statements + at + code + "\nreturn nil\n}\n"
		f, err = parser.ParseFile(token.NewFileSet(), name, declarations, 0)
	}
	if err != nil {
		return nil, err
	}
	imports := ""
	for _, n := range unresolved(f) {
		if path, ok := known[n]; ok {
			imports += fmt.Sprintf("import %q\n", path)
		}
	}
	_, body, _ := strings.Cut(declarations, "\n")
	return parser.ParseFile(fset, name, "package snippets\n"+imports+body, 0)
}

// unresolved are the names that a file itself does not declare, once each.
func unresolved(f *ast.File) []string {
	out := make(map[string]bool)
	for _, id := range f.Unresolved { // deprecated for what it says of types; of these names it says enough
		out[id.Name] = true
	}
	return slices.Sorted(maps.Keys(out))
}

// compile type-checks all units and gives the errors.
func compile(root string, units []*unit) ([]string, error) {
	uses := make(map[string]bool)
	for _, u := range units {
		for _, f := range u.files {
			for _, spec := range f.Imports {
				uses[strings.Trim(spec.Path.Value, `"`)] = true
			}
		}
	}
	exports, err := exported(root, slices.Sorted(maps.Keys(uses)))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, u := range units {
		lookup := func(path string) (io.ReadCloser, error) {
			if exports[path] == "" {
				return nil, fmt.Errorf("no package %s", path)
			}
			return os.Open(exports[path])
		}
		cfg := types.Config{
			Importer: importer.ForCompiler(u.fset, "gc", lookup),
			Error: func(err error) {
				var te types.Error
				if errors.As(err, &te) && !te.Soft { // what is not used is a snippet's right
					out = append(out, fmt.Sprintf("%s: %s", te.Fset.Position(te.Pos), te.Msg))
				}
			},
		}
		_, _ = cfg.Check("snippets", u.fset, u.files, nil) // its errors were told
	}
	return out, nil
}

// exported gives where the go command keeps what packages export, and those they import.
func exported(root string, paths []string) (map[string]string, error) {
	out := make(map[string]string)
	if len(paths) == 0 {
		return out, nil
	}
	cmd := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, paths...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		path, file, _ := strings.Cut(s.Text(), " ")
		out[path] = file
	}
	return out, nil
}

// quotation says why code is not a part of a file of the folder.
func (t *tree) quotation(folder, code string) error {
	files, err := filepath.Glob(filepath.Join(t.root, filepath.FromSlash(folder), "*.go"))
	if err != nil {
		return err
	}
	want := plainLines(code)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.Contains(plainLines(string(b)), want) {
			return nil
		}
	}
	return fmt.Errorf("this is not in a file of %s", folder)
}

// plainLines is code without its indentation and what follows its lines.
func plainLines(code string) string {
	var out strings.Builder
	out.WriteByte('\n')
	for line := range strings.Lines(strings.Trim(code, "\n")) {
		out.WriteString(strings.TrimSpace(line))
		out.WriteByte('\n')
	}
	return out.String()
}
