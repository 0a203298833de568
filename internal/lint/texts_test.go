package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// developers are the texts that speak of the code by its names.
var developers = []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/decisions/*.md"}

var (
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	qualifies = regexp.MustCompile(`^([a-z]\w*)((?:\.[A-Z]\w*)+)(?:\(\))?$`) // owner.Core.Step
	mixedCase = regexp.MustCompile(`^[A-Za-z]*[a-z][A-Z]\w*(?:\(\))?$`)
)

// code is every name in the sources: of each Go package, and of all.
type code struct {
	of  map[string]map[string]bool
	all map[string]bool
}

func (c *code) add(pkg, name string) {
	if c.of[pkg] == nil {
		c.of[pkg] = make(map[string]bool)
	}
	c.of[pkg][name], c.all[name] = true, true
}

// missing gives the names in a text's code spans that no source has.
func (c *code) missing(text string) (out []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		span := m[1]
		if q := qualifies.FindStringSubmatch(span); q != nil && c.of[q[1]] != nil {
			for name := range strings.SplitSeq(q[2][1:], ".") {
				if !c.of[q[1]][name] {
					out = append(out, span)
					break
				}
			}
		} else if mixedCase.MatchString(span) && !c.all[strings.TrimSuffix(span, "()")] {
			out = append(out, span)
		}
	}
	return out
}

// sourceNames reads the module's Go, with tests, and its Python and protobuf.
func sourceNames(t *testing.T) *code {
	t.Helper()
	c := &code{make(map[string]map[string]bool), make(map[string]bool)}
	word := regexp.MustCompile(`\w+`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch ext := filepath.Ext(path); {
		case d.IsDir() && path != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir():
		case ext == ".go":
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg := strings.TrimSuffix(f.Name.Name, "_test")
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					c.add(pkg, id.Name)
				}
				return true
			})
		case ext == ".py" || ext == ".proto":
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, w := range word.FindAllString(string(b), -1) {
				c.all[w] = true
			}
		}
		return nil
	})
	if err != nil || len(c.of) < 50 {
		t.Fatalf("%d packages, %v", len(c.of), err)
	}
	return c
}

// What the texts for developers name, in code spans, is in the code: gcs.Core of a package, and each name such as forgetObject.
func TestTextsNameWhatIsThere(t *testing.T) {
	c := sourceNames(t)
	for _, pattern := range developers {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.missing(string(text)) {
				t.Errorf("%s: nothing is called %s", strings.TrimPrefix(page, root+"/"), name)
			}
		}
	}
}

func TestTheRuleOfNames(t *testing.T) {
	c := &code{make(map[string]map[string]bool), make(map[string]bool)}
	c.add("gcs", "Core")
	c.add("owner", "forgetObject")
	for text, want := range map[string]string{
		"`gcs.Core` and `forgetObject`": "",
		"`gcs.Tables`, `gcs.Core.Nope`": "gcs.Tables gcs.Core.Nope",
		"`owner.Core`":                  "owner.Core",
		"`forgetTask()`":                "forgetTask()",
		"forgetTask, `os.Exit`, `task`": "",
	} {
		if got := strings.Join(c.missing(text), " "); got != want {
			t.Errorf("%s: missing are %q, not %q", text, got, want)
		}
	}
}
