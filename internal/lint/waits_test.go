package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A bound of such a length, in real time, fails what is right on a machine that is slow, or ends before the bound of the kit. What a test lets expire is shorter.
const (
	leastBound = time.Second
	mostBound  = 10 * time.Minute
)

// waiting are the names of functions that wait as long as they are told.
var waiting = regexp.MustCompile(`^(?i:eventually|await|until|within|wait)`)

// timed are functions whose time is what they test, and why.
var timed = map[string]string{
	"e2e/cluster.TestAStoppedNodeIsNotTakenForDead":             "how long the node is stopped",
	"e2e/cluster.TestStressAnIdleNodeCostsLittle":               "how long it measures",
	"e2e/cluster.TestTheProbesHearWhatIsSaid":                   "how long a stranger listens",
	"e2e/cluster.reach":                                         "how long a stranger listens for what nobody must say",
	"e2e/cluster.realTables":                                    "how long it measures",
	"e2e/faults.TestClocksThatAreApart":                         "a deadline of a task",
	"telemetry/otlp.TestWhatASlowCollectorDoesNotTakeIsCounted": "a collector that takes nothing: an end uses its time up",
}

// TestWaitsTakeTheirBoundFromTheKit finds the waits of tests that end after a constant of real time.
func TestWaitsTakeTheirBoundFromTheKit(t *testing.T) {
	used := make(map[string]bool)
	for dir, names := range testFiles(t) {
		fset := token.NewFileSet()
		files := make(map[string]*ast.File)
		for _, name := range names {
			f, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = f
		}
		known := constants(slices.Collect(maps.Values(files)))
		for name, f := range files {
			for _, w := range waitsOf(f, known) {
				fn := dir + "." + w.in
				switch {
				case timed[fn] != "":
					used[fn] = true
				default:
					t.Errorf("%s:%d: %s", name, fset.Position(w.pos).Line, w.what)
				}
			}
		}
	}
	for fn, why := range timed {
		if !used[fn] {
			t.Errorf("timed names %s (%s), where no wait has such a bound: delete the line", fn, why)
		}
	}
}

// testFiles gives the files of tests in each directory of the module, and those of packages that are only for tests.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	all := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch dir := filepath.Dir(name); {
		case d.IsDir() && (d.Name() == "testdata" || name == "python" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".go") && in(dir, "e2e"):
			all[dir] = append(all[dir], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("%d directories have tests", len(all))
	}
	return all
}

// wait is a wait that is refused: in which function, and why.
type wait struct {
	pos  token.Pos
	in   string
	what string
}

// waitsOf finds what is refused in a file. The time in a bubble of synctest is not real.
func waitsOf(f *ast.File, known map[string]time.Duration) (out []wait) {
	for _, d := range f.Decls {
		name := ""
		if fn, ok := d.(*ast.FuncDecl); ok {
			name = fn.Name.Name
		}
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if called(call.Fun) == "synctest.Test" {
				return false
			}
			if what := refused(call, known); what != "" {
				out = append(out, wait{call.Pos(), name, what})
			}
			return true
		})
	}
	return out
}

// instead says what to write for what, of the standard library, ends a wait.
var instead = map[string]string{
	"time.After":               "time.After(testkit.Patience()), or testkit.Receive",
	"time.NewTimer":            "time.NewTimer(testkit.Patience())",
	"time.AfterFunc":           "time.AfterFunc(testkit.Patience(), f)",
	"time.Now().Add":           "testkit.Eventually, or time.Now().Add(testkit.Patience())",
	"context.WithTimeout":      "testkit.Within(t), or a timeout of testkit.Patience()",
	"context.WithTimeoutCause": "testkit.Within(t), or a timeout of testkit.Patience()",
	"net.DialTimeout":          "a timeout of testkit.Patience()",
}

// refused says what is wrong with a call, if anything is.
func refused(call *ast.CallExpr, known map[string]time.Duration) string {
	callee := called(call.Fun)
	use := instead[callee]
	if use == "" {
		if !waiting.MatchString(callee[strings.LastIndex(callee, ".")+1:]) {
			return ""
		}
		use = "testkit.Eventually, or a bound of testkit.Patience()"
	}
	for _, arg := range call.Args {
		if d, ok := duration(arg, known); ok && d >= leastBound && d <= mostBound {
			return fmt.Sprintf("%s ends a wait after %v of real time: use %s", callee, d, use)
		}
	}
	return ""
}

// called is the name of what is called: a package's function, or a method, with what it is of.
func called(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.IndexExpr: // of a generic function
		return called(fun.X)
	case *ast.IndexListExpr:
		return called(fun.X)
	case *ast.CallExpr:
		return called(fun.Fun) + "()"
	case *ast.SelectorExpr:
		return called(fun.X) + "." + fun.Sel.Name
	}
	return ""
}

// constants are the durations that files name: constants, and variables of the package.
func constants(files []*ast.File) map[string]time.Duration {
	known := make(map[string]time.Duration)
	for before := -1; before < len(known); { // one may be made of another
		before = len(known)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				d, ok := n.(*ast.GenDecl)
				if !ok || d.Tok != token.CONST && !slices.Contains(f.Decls, ast.Decl(d)) {
					return true
				}
				for _, spec := range d.Specs {
					v, ok := spec.(*ast.ValueSpec)
					if !ok || len(v.Values) != len(v.Names) {
						continue
					}
					for i, name := range v.Names {
						if d, ok := duration(v.Values[i], known); ok {
							known[name.Name] = d
						}
					}
				}
				return true
			})
		}
	}
	return known
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// duration is what an expression of constants comes to, if it is one and has a unit.
func duration(e ast.Expr, known map[string]time.Duration) (time.Duration, bool) {
	n, unit := value(e, known)
	return time.Duration(n), unit == 1
}

// value is what an expression of constants comes to, and how many units of time are in it: below none, if it is no such expression.
func value(e ast.Expr, known map[string]time.Duration) (n float64, unit int) {
	const none = -100
	switch e := e.(type) {
	case *ast.BasicLit:
		if n, err := strconv.ParseFloat(strings.ReplaceAll(e.Value, "_", ""), 64); err == nil {
			return n, 0
		}
	case *ast.ParenExpr:
		return value(e.X, known)
	case *ast.Ident:
		if d, ok := known[e.Name]; ok {
			return float64(d), 1
		}
	case *ast.SelectorExpr:
		if d := units[e.Sel.Name]; d != 0 && called(e.X) == "time" {
			return float64(d), 1
		}
	case *ast.CallExpr:
		if called(e.Fun) == "time.Duration" && len(e.Args) == 1 {
			return value(e.Args[0], known)
		}
	case *ast.BinaryExpr:
		x, u := value(e.X, known)
		y, v := value(e.Y, known)
		switch e.Op {
		case token.MUL:
			return x * y, u + v
		case token.QUO:
			return x / y, u - v
		case token.ADD:
			return x + y, min(u, v)
		case token.SUB:
			return x - y, min(u, v)
		}
	}
	return 0, none
}

// What the rule finds, and what it lets pass.
func TestTheRuleOfWaits(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`func f(t *testing.T) { <-time.After(testkit.Patience()) }`, ""},
		{`func f(t *testing.T) { <-time.After(50 * time.Millisecond) }`, ""},
		{`func f(t *testing.T) { time.AfterFunc(time.Hour, nil) }`, ""},
		{`func f(t *testing.T) { synctest.Test(t, func(t *testing.T) { <-time.After(10 * time.Second) }) }`, ""},
		{`func f(t *testing.T) { testkit.Eventually(t, "x", func() bool { return true }) }`, ""},
		{`func f(t *testing.T) { start(Config{Grace: 5 * time.Second}) }`, ""},
		{`func f(t *testing.T, d time.Duration) { within(t, d); within(t, lease-time.Second) }`, ""},
		{`func f(at time.Time) { until(time.Until(at)) }`, ""},
		{`func f(t *testing.T) { <-time.After(10 * time.Second) }`, "time.After ends a wait after 10s of real time: use time.After(testkit.Patience())"},
		{`func f(t *testing.T) { time.NewTimer(time.Minute) }`, "time.NewTimer ends a wait after 1m0s"},
		{`func f(t *testing.T) { context.WithTimeout(t.Context(), 20*time.Second) }`, "use testkit.Within(t)"},
		{`func f(c net.Conn) { c.SetDeadline(time.Now().Add(5 * time.Second)) }`, "time.Now().Add ends a wait after 5s"},
		{`func f(t *testing.T) { for end := time.Now().Add(1500 * time.Millisecond); ; {} }`, "time.Now().Add ends a wait after 1.5s"},
		{`func f(t *testing.T) { net.DialTimeout("tcp", "x", time.Duration(3)*time.Second) }`, "net.DialTimeout ends a wait after 3s"},
		{`func f(t *testing.T) { eventually(t, 30*time.Second, "x", nil) }`, "eventually ends a wait after 30s of real time: use testkit.Eventually"},
		{`func f(n *node) { n.awaitPeer(2, time.Minute/2) }`, "n.awaitPeer ends a wait after 30s"},
		{`func f(t *testing.T) { until[int](t, (4 + 5) * time.Second) }`, "until ends a wait after 9s"},
		{`const soon = time.Second; const patience = 20 * soon; func f(t *testing.T) { <-time.After(patience) }`, "time.After ends a wait after 20s"},
		{`func f(t *testing.T) { const d = 2 * time.Second; within(t, 2 * d) }`, "within ends a wait after 4s"},
		{`var limit = time.Minute; func f(t *testing.T) { within(t, limit - time.Second) }`, "within ends a wait after 59s"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+c.body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, w := range waitsOf(f, constants([]*ast.File{f})) {
			found = append(found, w.what)
		}
		switch {
		case c.want == "" && len(found) != 0:
			t.Errorf("%s: found %q", c.body, found)
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)):
			t.Errorf("%s: found %q, want %s", c.body, found, c.want)
		}
	}
}
