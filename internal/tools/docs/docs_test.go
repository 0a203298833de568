package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..", "..")

func TestTheTextsAreInOrder(t *testing.T) {
	found, err := check(root, testWriter{t})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
	all, err := pages(root)
	if err != nil || len(all) < 25 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// plant makes a tree with one page and what it may name.
func plant(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module mobula\n\ngo 1.26\n", "mobula.go": "package mobula\n\ntype Cluster struct{}\n", "Makefile": "build: ## builds\n", "cmd/mobula/app.go": "package main\n\nvar _ = cobra.Command{Use: \"status\"}\n",
		"python/mobula/__init__.py": "__all__ = [\"get\"]\n", "samples/bank/bank.go": "package bank\n\nfunc f() {\n\tg()\n}\n",
		"other.md": "# Other\n\n## A part of it\n", "page.md": text,
	} {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEachFaultIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // none: the text is in order
	}{
		"all is well": {"[a](other.md), [b](other.md#a-part-of-it), [c](https://example.com/x), `samples/bank`, `bank.go`, `owner/JOB`, `cmd/3`, `make build`, `mobula status`", nil},
		"dead link":   {"one\n\n[a](gone.md)\n", []string{`page.md:3: link "gone.md"`}},
		"outside":     {"[a](../outside.md)\n", []string{`page.md:1: link "../outside.md"`}},
		"dead anchor": {"[a](other.md#nowhere)\n", []string{`no heading "nowhere"`}},
		"path":        {"see `samples/shop`\n", []string{"page.md:1: there is no samples/shop"}},
		"file":        {"see `shop.go`\n", []string{"there is no file shop.go"}},
		"target":      {"```sh\nmake build && make tea\n```\n", []string{"make has no target tea"}},
		"command":     {"run `mobula dance`\n", []string{"mobula has no command dance"}},

		"statements":   {"```go\nx := fmt.Sprint(1)\nfor range 3 {\n}\n```\n", nil},
		"declarations": {"```go\nvar a = time.Second\n```\n\n```go\nfmt.Println(a)\n```\n", nil},
		"hidden":       {"<!-- go\nfunc f() error { return nil }\n-->\n```go\nerr := f()\n```\n", nil},
		"program":      {"```go\npackage main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println() }\n```\n", nil},
		"no Go":        {"```go\nfor {\n```\n", []string{"page.md:"}},
		"type":         {"text\n\n```go\nvar a int = \"x\"\n```\n", []string{"page.md:4:", "cannot use"}},
		"undefined":    {"```go\nf(1)\n```\n", []string{"page.md:2: undefined: f"}},
		"not the API":  {"```go\nfmt.Dance()\n```\n", []string{"undefined: fmt.Dance"}},
		"quotation":    {"<!-- go from samples/bank -->\n\n```go\nfunc f() {\n    g()\n}\n```\n", nil},
		"misquoted":    {"<!-- go from samples/bank -->\n\n```go\nfunc f() {\n\th()\n}\n```\n", []string{"page.md:4: this is not in a file of samples/bank"}},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := check(plant(t, c.text), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			all := strings.Join(found, "\n")
			if len(c.want) == 0 && all != "" {
				t.Errorf("found:\n%s", all)
			}
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("found %q, not %q", all, want)
				}
			}
		})
	}
}

func TestFaultsOfPython(t *testing.T) {
	tree := &tree{root: plant(t, "")}
	var notes strings.Builder
	found, err := tree.compilePython([]pySnippet{
		{"a.md", 3, "import mobula\nmobula.get(1)\n"},
		{"b.md", 3, "x = (\n"},
		{"c.md", 3, "import mobula as ray\nray.dance()\n"},
	}, &notes)
	if err != nil {
		t.Fatal(err)
	}
	if notes.Len() > 0 && os.Getenv("REQUIRE_PYTHON") != "" {
		t.Fatal("REQUIRE_PYTHON is set, and " + notes.String())
	}
	if notes.Len() > 0 {
		t.Skip(notes.String()) // there is no Python, of which the Go half needs none
	}
	all := strings.Join(found, "\n")
	if len(found) != 2 || !strings.HasPrefix(found[0], "b.md:3: ") || found[1] != "c.md:4: package mobula has no dance" {
		t.Errorf("found:\n%s", all)
	}
}

func TestTheSiteHasAllThatIsPublic(t *testing.T) {
	out := t.TempDir()
	if err := site(root, out); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"README.html":             {"<h1 id=\"mobula\">", `href="docs/guide/objects.html"`, `href="python/README.html"`},
		"docs/guide/actors.html":  {`href="../../go/mobula.html"`, "<table>"},
		"go/mobula.html":          {`id="Ref.Get"`, `id="Start"`, "Example"},
		"go/mobula-chaos.html":    {`id="Point"`},
		"python/README.html":      {`href="../docs/glossary.html"`},
		"docs/figures.html":       {"bench-peers"},
		"index.html":              {"README.html"},
		"go/mobula-arrowipc.html": {"package arrowipc"},
	} {
		b, err := os.ReadFile(filepath.Join(out, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s has no %s", name, w)
			}
		}
	}
	if err := os.Remove(filepath.Join(out, "docs", "glossary.html")); err != nil {
		t.Fatal(err)
	}
	if err := leads(out); err == nil || !strings.Contains(err.Error(), "glossary.html") {
		t.Errorf("a page that is gone is no error: %v", err)
	}
}
