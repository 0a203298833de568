package lint

import (
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// public are the packages whose exported names a program may rely on. What they mark "Experimental:" is left out, and so is every other
// package of the module but drivers, of which it relies on the import alone: they can be imported, and are the runtime's own.
var public = []string{".", "arrowipc", "graph/spec", "mobulatest"}

var update = flag.Bool("update", false, "write the exported API of now, of a release, to testdata/api.txt")

const baseline = "testdata/api.txt"

const baselineHead = `# The exported API of the last release. make api writes it anew, when a release is made; meanwhile what is gone from it,
# or is another, stands in CHANGELOG.md under the coming release.
`

// TestTheAPIKeepsItsWord fails when something that the last release exported is gone or is another, and CHANGELOG.md does not name
// it in backquotes, as `mobula.Put`, `mobula.Cluster.Close` or `mobula.TaskError.Func`, under the coming release: its first section.
func TestTheAPIKeepsItsWord(t *testing.T) {
	now := exported(t)
	if *update {
		if err := os.WriteFile(baseline, []byte(baselineHead+strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(baseline)
	if err != nil {
		t.Fatal(err)
	}
	var before []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			before = append(before, line)
		}
	}
	if len(before) < 500 {
		t.Fatalf("%s has %d lines: that is not the API", baseline, len(before))
	}
	log, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, w := range unsaid(before, now, string(log)) {
		t.Error(w)
	}
}

// imported gives the public packages, as a program that imports them has them, and what go list says of each.
func imported(t *testing.T) (map[string]*pkg, []*types.Package) {
	t.Helper()
	packages(t) // looks at the sources, so that this test runs again when one changes
	args := []string{"-deps", "-export"}
	for _, p := range slices.Concat(public, drivers) {
		args = append(args, "./"+p)
	}
	all, err := list(args...)
	if err != nil {
		t.Fatal(err)
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		p := all[path]
		if p == nil || p.Export == "" {
			return nil, fmt.Errorf("go list -export has nothing of %s", path)
		}
		return os.Open(p.Export)
	})
	var pkgs []*types.Package
	for _, p := range public {
		path := module
		if p != "." {
			path += "/" + p
		}
		of, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, of)
	}
	return all, pkgs
}

// exported lists the API of the public packages, sorted.
func exported(t *testing.T) []string {
	t.Helper()
	all, pkgs := imported(t)
	var out []string
	for _, p := range pkgs {
		out = append(out, apiOf(p, experimental(t, all[p.Path()]))...)
	}
	for _, p := range drivers {
		if all[module+"/"+p] == nil {
			t.Errorf("there is no package %s", p)
		}
		out = append(out, "import "+module+"/"+p)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unsaid gives what the changelog has to name and does not.
func unsaid(before, now []string, changelog string) []string {
	have := make(map[string]bool, len(now))
	names := make(map[string]bool, len(now)) // that are there, whatever they are
	for _, line := range now {
		have[line], names[symbol(line)] = true, true
	}
	coming := firstSection(changelog)
	said := func(name string) bool { return strings.Contains(coming, "`"+name+"`") }
	out := make(map[string]bool)
	for _, line := range before {
		name := symbol(line)
		owner := name[:max(0, strings.LastIndex(name, "."))]
		switch {
		case have[line], said(name):
		case owner != "" && !names[owner] && said(owner): // a type that is gone, with all that it had
		case names[name]:
			out[fmt.Sprintf("%s is not what it was, and CHANGELOG.md does not say so of `%s` under the coming release: %s", name, name, line)] = true
		default:
			out[fmt.Sprintf("%s is gone, and CHANGELOG.md does not say so of `%s` under the coming release: %s", name, name, line)] = true
		}
	}
	return slices.Sorted(maps.Keys(out))
}

// symbol is what a line of the list is about: its second word, up to what tells more.
func symbol(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	if i := strings.IndexAny(rest, " [("); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// firstSection is what stands in a changelog below its first heading of the second level.
func firstSection(changelog string) string {
	_, rest, _ := strings.Cut("\n"+changelog, "\n## ")
	first, _, _ := strings.Cut(rest, "\n## ")
	return first
}

func TestABreakMustBeSaid(t *testing.T) {
	before := []string{
		"func mobula.Put[T any](context.Context, T) (mobula.Ref[T], error)",
		"field mobula.TaskError.Func string",
		"method mobula.Old.Run() error",
		"type mobula.Old struct",
		"type mobula.TaskError struct",
	}
	now := []string{
		"func mobula.New() error",
		"func mobula.Put[T any](context.Context, T, ...mobula.PutOption) (mobula.Ref[T], error)",
		"type mobula.TaskError struct",
	}
	for _, c := range []struct {
		changelog string
		want      []string
	}{
		{"", []string{"Old is gone", "Old.Run is gone", "Put is not what it was", "TaskError.Func is gone"}},
		{"# Changes\n\n## 2\n\n`mobula.Put` takes options. Write `err.Name` instead of `mobula.TaskError.Func`. `mobula.Old`: nothing.\n\n## 1\n", nil},
		{"## 2\n\n`mobula.Put`\n\n## 1\n\n`mobula.Old` `mobula.TaskError.Func`\n", []string{"Old is gone", "Old.Run is gone", "TaskError.Func is gone"}},
		{"## 2\n\n`mobula.Put` `mobula.Old` `mobula.TaskError`\n", []string{"TaskError.Func is gone"}}, // the type is there yet
	} {
		got := unsaid(before, now, c.changelog)
		ok := len(got) == len(c.want)
		for i := range min(len(got), len(c.want)) {
			ok = ok && strings.HasPrefix(got[i], "mobula."+c.want[i])
		}
		if !ok {
			t.Errorf("%q: got %q, want %q", c.changelog, got, c.want)
		}
	}
	if got := unsaid(before, before, ""); len(got) != 0 {
		t.Errorf("of an API that is as it was: %q", got)
	}
}
