package mobula_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// The house rules that can be checked: what the texts say must be true.

// sources gives every hand-written Go file of the module, except tests, by its path.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	out := make(map[string]*ast.File)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return cmpErr(err, fs.SkipDir)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err == nil && !ast.IsGenerated(f) {
			out[path] = f
		}
		return err
	})
	if err != nil || len(out) < 100 {
		t.Fatalf("%d files, %v", len(out), err)
	}
	return out
}

func cmpErr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	files := sources(t)
	for path := range files {
		doc := files[filepath.Join(filepath.Dir(path), "doc.go")]
		if doc == nil || doc.Doc == nil || len(doc.Doc.List) < 3 {
			t.Errorf("%s: its package has no doc.go that says what it is", path)
		}
		if n := strings.Count(read(t, path), "\n"); n > 600 {
			t.Errorf("%s has %d lines: more than one idea", path, n)
		}
	}
}

// The package is a guest in its program: it neither handles signals nor ends the process.
func TestTheLibraryIsAGuest(t *testing.T) {
	ours := []string{"cmd/", "samples/", "benchmarks/", "internal/tools/", "e2e/"}
	for path, f := range sources(t) {
		if slices.ContainsFunc(ours, func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, _ := sel.X.(*ast.Ident)
			if pkg == nil {
				return true
			}
			switch call := pkg.Name + "." + sel.Sel.Name; call {
			case "os.Exit", "log.Fatal", "log.Fatalf", "signal.Notify", "signal.NotifyContext", "signal.Ignore", "signal.Reset":
				if call != "os.Exit" || path != "cluster.go" { // Main
					t.Errorf("%s has %s", path, call)
				}
			}
			return true
		})
	}
}

func TestEverySentinelIsExported(t *testing.T) {
	have := make(map[string]bool)
	files := sources(t)
	for ident := range sentinels(files["errors.go"]) {
		have[ident] = true
	}
	for ident := range sentinels(files["internal/errs/errs.go"]) {
		if !have[ident] {
			t.Errorf("a program cannot ask for errs.%s", ident)
		}
	}
	if len(have) < 30 {
		t.Errorf("%d sentinels were found", len(have))
	}
}

func sentinels(f *ast.File) map[string]bool {
	out := make(map[string]bool)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				if strings.HasPrefix(name.Name, "Err") {
					out[name.Name] = true
				}
			}
		}
	}
	return out
}

type resident struct{}

var residents = mobula.RegisterActor0("house/resident", func(context.Context) (*resident, error) { return &resident{}, nil })

// ARCHITECTURE.md names every component of a live node, in its tree and in its table of what
// rebuilds it.
func TestTheArchitectureIsTrue(t *testing.T) {
	page := read(t, "ARCHITECTURE.md")
	tree, tables, ok := strings.Cut(page, "## Layers")
	if !ok {
		t.Fatal("the page has no layers")
	}
	c := mobulatest.Start(t, mobula.WithProcesses(), mobula.WithCPUs(1))
	ctx := c.Context(t.Context())
	if _, err := exampleSquare.Go(ctx, mobula.V(2.0)).Get(ctx); err != nil { // there is a worker now
		t.Fatal(err)
	}
	named, err := residents.Spawn(ctx, mobula.Named("", "architecture")) // and a control plane
	if err != nil {
		t.Fatal(err)
	}
	defer named.Release()
	parts, err := c.ListComponents(ctx, mobula.Query{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[string]string)
	for _, p := range parts.Rows {
		kinds[p.Kind] = regexp.MustCompile(`[0-9]+$`).ReplaceAllString(p.Path[strings.Index(p.Path, "/")+1:], "")
	}
	for _, kind := range []string{"gcs", "jobs", "directory", "driver", "objectstore", "spiller", "scheduler", "memmon", "owner", "worker"} {
		if kinds[kind] == "" {
			t.Errorf("no %s in the tree %v", kind, slices.Collect(maps.Values(kinds)))
		}
	}
	for _, path := range kinds {
		name := path[strings.LastIndex(strings.TrimSuffix(path, "/"), "/")+1:]
		if !strings.Contains(tree, "+- "+name) {
			t.Errorf("the tree has %s; the page's does not", path)
		}
		if !strings.Contains(tables, name) {
			t.Errorf("the page does not say what rebuilds %s", path)
		}
	}
	for path := range sources(t) {
		top, _, nested := strings.Cut(path, "/")
		if nested && !strings.Contains(page, "`"+top) {
			t.Errorf("the page says nothing of %s/", top)
		}
	}
}

// CONTRIBUTING sends a newcomer to files, and to functions in them.
func TestContributingNamesWhatIsThere(t *testing.T) {
	named := 0
	for _, m := range regexp.MustCompile("`([\\w./]+\\.(?:go|py|proto))(?::(\\w+))?`").FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		path, function := m[1], m[2]
		if !strings.Contains(path, "/") && function == "" {
			continue // of a package that is named beside it
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", m[0], err)
			continue
		}
		named++
		if function != "" && !regexp.MustCompile(`(?m)^\s*(?:func (?:\([^)]*\) )?|def )`+function+`[\[(]`).MatchString(read(t, path)) {
			t.Errorf("%s: no function of that name is there", m[0])
		}
	}
	if named < 20 {
		t.Errorf("%d files are named", named)
	}
}

// Every make target on the README's first screen exists, and every target has a help text.
func TestMakefileHasTheReadmesTargets(t *testing.T) {
	makefile, readme := read(t, "Makefile"), read(t, "README.md")
	help := regexp.MustCompile(`(?m)^([a-z-]+):.*## .+$`).FindAllStringSubmatch(makefile, -1)
	var targets []string
	for _, m := range help {
		targets = append(targets, m[1])
	}
	phony := strings.Fields(regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(makefile)[1])
	for _, p := range phony {
		if !slices.Contains(targets, p) {
			t.Errorf("make help does not list %s", p)
		}
	}
	for _, want := range []string{"help", "demo", "test", "race", "stress", "fuzz", "lint", "bench", "cover", "generate"} {
		if !slices.Contains(phony, want) {
			t.Errorf("there is no target %s", want)
		}
	}
	lines := strings.Split(readme, "\n")
	first := strings.Join(lines[:min(40, len(lines))], "\n")
	for _, want := range []string{"make demo", "make test", "one static binary", "no CGO", "no Python", "For Go teams"} {
		if !strings.Contains(strings.ToLower(first), strings.ToLower(want)) {
			t.Errorf("the README's first screen does not say %q", want)
		}
	}
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(readme, "") // Go's type arguments look like links
	for _, m := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(prose, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("the README leads nowhere: %v", err)
		}
	}
}

// Cores and messages get their times from the node's clock (internal/steady), which nobody can set. The wall clock is only for times
// that are shown, or that outlive the machine's uptime.
func TestTheWallClockIsAskedInFewPlaces(t *testing.T) {
	may := map[string]string{
		"internal/steady/steady.go":     "the node's clock begins with it",
		"internal/codec/times.go":       "a time of the user's",
		"internal/trust/":               "tokens and certificates outlive the machine's uptime, and other machines judge them",
		"internal/node/inspect/logs.go": "shown: when a file was written",
		"internal/node/graphs.go":       "shown: when a graph began",
		"raylet/pool/proc/logs.go":      "shown: when a file was written",
		"internal/node/blobs_serve.go":  "whether a file is still the one that was hashed",
		"internal/node/blobdir/":        "which files of an earlier life were used last",
		"cmd/mobula/watch.go":           "shown: what time it is",
		"objectstore/spill/disk/":       "what a dead node has spilled is kept for a day",
		"objectstore/spill/s3/":         "the same",
		"objectstore/spill/storage/":    "the same: since when",
		"benchmarks/":                   "measured",
		"samples/":                      "the user's",
		"internal/tools/":               "not in the runtime",
	}
	outside := func(path string) bool {
		for place := range may {
			if strings.HasPrefix(path, place) {
				return true
			}
		}
		return false
	}
	for path, f := range sources(t) {
		if outside(path) {
			continue
		}
		eachCall(f, func(of *ast.SelectorExpr, args int) {
			wall := strings.HasPrefix(of.Sel.Name, "Unix") && args == 0 || of.Sel.Name == "ModTime" || of.Sel.Name == "UTC" || of.Sel.Name == "Local"
			if strip, ok := of.X.(*ast.CallExpr); ok && (of.Sel.Name == "Round" || of.Sel.Name == "Truncate" || of.Sel.Name == "Format") {
				now, ok := strip.Fun.(*ast.SelectorExpr)
				wall = ok && nameOf(now.X) == "time" && now.Sel.Name == "Now"
			}
			if wall {
				t.Errorf("%s: .%s() is a time of the wall clock: ask the node's clock", path, of.Sel.Name)
			}
		})
	}
}

// eachCall calls visit for every call of a selector (x.f), with the number of its arguments.
func eachCall(f *ast.File, visit func(of *ast.SelectorExpr, args int)) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if of, ok := call.Fun.(*ast.SelectorExpr); ok {
				visit(of, len(call.Args))
			}
		}
		return true
	})
}

func nameOf(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
