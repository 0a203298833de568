// It takes gigabytes of memory, and ten times that under the race detector.

//go:build !race

package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/callgraph/rta"
	gopackages "golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// onlyForTests is what only tests call, and why it is there: a directory with all below it, a file, or a function as "wire.Append", with * for any
// part of a name.
var onlyForTests = []struct{ what, why string }{
	{"e2e/harness", "what the end-to-end tests share"},
	{"gcs/gcstest", "a control-plane server for tests"},
	{"internal/home/register/registertest", "the conformance test of registers, and one in memory"},
	{"internal/lint/parts", "a rule that tests of two packages hold"},
	{"internal/testkit", "what tests of all packages share"},
	{"internal/transcript", "the form of stories by which cores are tested"},
	{"internal/trust/trusttest", "an authority for tests"},
	{"internal/world", "the simulated cluster, which only tests run"},
	{"objectstore/spill/storage/storagetest", "the conformance test of storages"},
	{"remote/membership/memnet", "a network in memory, for tests of membership"},
	{"telemetry/collector", "a collector for tests of telemetry, in Go and in Python"},

	{"chaos", "users' tests call it"},
	{"internal/fault.newCore", "chaos calls it"},
	{"internal/fault.New", "chaos calls it"},
	{"internal/fault.Rule.check", "chaos calls it"},
	{"internal/fault.messageKind", "chaos calls it"},

	{"gcs/shell/memory.go", "the control plane in memory, for tests of what stands on it"},
	{"remote/shell/memory.go", "the transport in memory, which passes the wire's conformance test"},
	{"remote/shell/stream.go", "its connections"},
	{"remote/transfer/shell/pipes.go", "the same for bulk objects"},
	{"wire/conn/pipe.go", "a connection in memory, for tests of both ends"},
	{"internal/netns/cuts.go", "cuts between the namespaces of tests"},
	{"internal/netns/nodes.Cluster.*", "joins and returns of nodes in those"},
	{"internal/netns/nodes.Node.Wait", "the end of one"},
	{"gcs/model.Tables.Accuse", "a test of the model drives the accusation, which the real node makes by itself"},
	{"remote/membership/model.Gossip.*", "tests drive the model by it"},
	{"graph/sim", "the simulator of a graph over workers: tests compare policies in it"},
	{"graph/order.Tasks.*", "the plain graph, of which tests of three packages want an order"},
	{"internal/config.Default", "tests of those who take settings"},
	{"internal/trust/join.Server.Config", "tests serve by it on a port of their own"},
	{"raylet/owner/task.Events", "tests of two packages go through the machine"},
	{"wire.Append", "the plain form of an Encoder, which tests of one message want"},
	{"wire.Decode", "the plain form of a Decoder"},
	{"objectstore/spill/format.Decode*", "the other half of the file's format: what is written is read, and fuzzed"},
	{"objectstore/spill/storage.Index", "the same over a storage"},
}

// TestWhatOnlyTestsCall finds functions that no program reaches: none of this module's, and none that calls what is exported. Tests keep such code
// alive and green, and it does nothing.
func TestWhatOnlyTestsCall(t *testing.T) {
	t.Parallel()
	_, pkgs := imported(t)
	dead, err := unreached(root, module, surface(pkgs))
	if err != nil {
		t.Fatal(err)
	}
	needed := make([]bool, len(onlyForTests))
	for _, d := range dead {
		i := slices.IndexFunc(onlyForTests, func(e struct{ what, why string }) bool { return d.is(e.what) })
		if i < 0 {
			t.Errorf("%s:%d: only tests call %s: it is to go, to be driven, or to stand in the table with a reason", d.pos.Filename, d.pos.Line, d.name)
			continue
		}
		needed[i] = true
	}
	for i, e := range onlyForTests {
		if !needed[i] {
			t.Errorf("%s is excepted, and is not there or is called by a program", e.what)
		}
	}
}

// unused is a function that no program reaches.
type unused struct {
	dir, name string
	pos       token.Position
}

func (u unused) is(what string) bool {
	if in(u.dir, what) || u.pos.Filename == what {
		return true
	}
	ok, err := path.Match(what, u.dir+"."+u.name)
	return err == nil && ok
}

// unreached looks at a whole module as one program, to which users' programs are added as one more main package.
func unreached(dir, module, users string) ([]unused, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	const extra = "internal/lint/users"
	file := filepath.Join(dir, extra, "main.go")
	initial, err := gopackages.Load(&gopackages.Config{
		Mode: gopackages.LoadAllSyntax | gopackages.NeedModule, Dir: dir, Env: append(os.Environ(), "CGO_ENABLED=0"), Overlay: map[string][]byte{file: []byte(users)},
	}, "./...", "./"+extra)
	if err != nil {
		return nil, err
	}
	var broken []error
	gopackages.Visit(initial, nil, func(p *gopackages.Package) {
		for _, e := range p.Errors {
			broken = append(broken, e)
		}
	})
	if len(broken) > 0 {
		return nil, fmt.Errorf("the module does not build, or not with %s: %v", extra, broken)
	}
	prog, pkgs := ssautil.AllPackages(initial, ssa.InstantiateGenerics)
	prog.Build()
	reached := make(map[token.Pos]bool)
	for f := range rta.Analyze(roots(pkgs, module+"/"+extra), false).Reachable {
		reached[f.Pos()] = true
	}
	var out []unused
	for _, p := range initial {
		if p.PkgPath == module+"/"+extra {
			continue
		}
		for _, f := range p.Syntax {
			if ast.IsGenerated(f) {
				continue
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && !reached[d.Name.Pos()] && d.Name.Name != "init" && d.Name.Name != "_" && !isMark(d) {
					pos := p.Fset.Position(d.Name.Pos())
					pos.Filename, _ = filepath.Rel(dir, pos.Filename)
					out = append(out, unused{dir: strings.TrimPrefix(p.PkgPath, module+"/"), name: qualified(d), pos: pos})
				}
			}
		}
	}
	return out, nil
}

// roots are where programs begin, and what the program that stands for users names.
func roots(pkgs []*ssa.Package, users string) (out []*ssa.Function) {
	for _, p := range ssautil.MainPackages(pkgs) {
		out = append(out, p.Func("init"), p.Func("main"))
		if p.Pkg.Path() != users {
			continue
		}
		for _, b := range p.Func("init").Blocks {
			for _, i := range b.Instrs {
				for _, o := range i.Operands(nil) {
					if f, ok := (*o).(*ssa.Function); ok {
						out = append(out, f)
					}
				}
			}
		}
	}
	return out
}

// isMark tells whether a method does nothing: it says that its type is one of a closed set.
func isMark(d *ast.FuncDecl) bool { return d.Recv != nil && d.Body != nil && len(d.Body.List) == 0 }

func qualified(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	return receiver(d.Recv.List[0].Type) + "." + d.Name.Name
}

// What counts as reached, and what does not.
func TestTheRuleOfUnreachedCode(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module planted\n\ngo 1.25\n",
		"a/a.go":  "package a\n\ntype Mark interface{ mark() }\ntype T struct{}\n\nfunc (T) mark() {}\nfunc (T) String() string { return called() }\nfunc (T) Other() int { return 1 }\nfunc called() string { return name[int]() }\nfunc name[X any]() string { return \"t\" }\nfunc Generic[X any](x X) X { return below(x) }\nfunc below[X any](x X) X { return x }\nfunc dead() { below(1) }\n",
		"a/a2.go": "// Code generated by hand. DO NOT EDIT.\n\npackage a\n\nfunc generated() {}\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\t\"planted/a\"\n)\n\nfunc main() { fmt.Println(a.T{}) }\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for users, want := range map[string]string{
		"":                             "[a.Generic a.below a.dead]",
		"a.Generic[int], (*a.T).Other": "[a.dead]",
		"a.Generic[string]":            "[a.dead]",
	} {
		source := "package main\n\nimport _ \"planted/a\"\n\nfunc main() {}\n"
		if users != "" {
			source = "package main\n\nimport \"planted/a\"\n\nvar uses = []any{" + users + "}\n\nfunc main() {}\n"
		}
		dead, err := unreached(dir, "planted", source)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range dead {
			got = append(got, d.dir+"."+d.name)
		}
		slices.Sort(got)
		if fmt.Sprint(got) != want {
			t.Errorf("with %q: %v, want %s", users, got, want)
		}
	}
}
