package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// sleepers are the functions of tests that sleep in real time, and why.
var sleepers = map[string]string{
	"e2e/api.Note":         "two calls at a time would meet in it",
	"e2e/restarts.book":    "between two tries, in a process without a test",
	"e2e/restarts.cluster": "the same",
	"e2e/restarts.look":    "the same",
	"e2e/restarts.goesOn":  "between two tries",
	"e2e/restarts.TestNameOfADeadActorIsFreeAfterAKill": "between two looks, as few as it can",
	"internal/node.BenchmarkGetOfAStoredObject":         "threads are to park",
	"internal/node.TestCloseWhileTheDriverRejoins":      "to begin at another point each time",
	"objectstore/spill/shell.soon":                      "between two looks, in a process without a test",
	"raylet/pool/proc.worker":                           "a process that stays",
	"remote/membership/shell.process":                   "a process that beats",
}

// A test waits for what must happen, and not for a length of time: a slow machine would need another. In a bubble of synctest time is not real, so files that
// use it are not looked at.
func TestTestsSleepInVirtualTime(t *testing.T) {
	used := make(map[string]bool)
	for dir, names := range testFiles(t) {
		for _, name := range names {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range sleepsOf(f) {
				fn := dir + "." + at.in
				if used[fn] = true; sleepers[fn] == "" {
					t.Errorf("%s:%d: a sleep: use testkit.Eventually, or a bubble of synctest", name, fset.Position(at.pos).Line)
				}
			}
		}
	}
	for fn, why := range sleepers {
		if !used[fn] {
			t.Errorf("sleepers names %s (%s), which does not sleep: delete the line", fn, why)
		}
	}
}

// sleepsOf gives the sleeps in a file, with the functions that they are in.
func sleepsOf(f *ast.File) (out []wait) {
	for _, i := range f.Imports {
		if strings.Trim(i.Path.Value, `"`) == "testing/synctest" {
			return nil
		}
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			if call, isCall := n.(*ast.CallExpr); isCall && called(call.Fun) == "time.Sleep" {
				at := wait{pos: call.Pos()}
				if ok {
					at.in = fn.Name.Name
				}
				out = append(out, at)
			}
			return true
		})
	}
	return out
}

func TestTheRuleOfSleeps(t *testing.T) {
	for text, want := range map[string]int{
		"package p\nimport \"time\"\nfunc f() { time.Sleep(1) }":                                                1,
		"package p\nimport \"time\"\nvar f = func() { time.Sleep(1) }":                                          1,
		"package p\nimport (\"time\"; \"testing/synctest\")\nfunc f() { time.Sleep(1) }\nvar _ = synctest.Wait": 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "p_test.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := sleepsOf(f); len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
