package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// forTests are packages that only tests are made of, besides those that import testing.
var forTests = words("internal/netns internal/world remote/membership/memnet")

// draws are the names of packages that draw at random from a seed that nobody has set: all but those listed after "only", or those listed.
var draws = map[string]struct {
	only    bool
	names   []string
	instead string
}{
	"testing/quick":      {names: words("Check CheckEqual"), instead: "draws from the clock: use testkit.Check"},
	"pgregory.net/rapid": {names: words("Check MakeCheck"), instead: "has a seed of its own at each run: use testkit.Check"},
	"math/rand":          {only: true, names: words("New NewSource NewZipf Rand Source Source64 Zipf"), instead: "draws from the global source: use testkit.Rand"},
	"math/rand/v2":       {only: true, names: words("New NewPCG NewChaCha8 NewZipf Rand Source PCG ChaCha8 Zipf"), instead: "draws from the global source: use testkit.Rand"},
	"mobula/chaos":       {names: words("Seed"), instead: "is another one at each run: use testkit.Seed"},
}

// unseeded are what may draw all the same, and why.
var unseeded = map[string]map[string]string{
	"chaos/chaos_test.go":       {"chaos.Seed": "it is what is tested"},
	"internal/testkit/seeds.go": {"rapid.Check": "with the seed of the test"},
	"mobulatest/cluster.go":     {"rand.IntN": "an address that no other process has: in containers several have one pid"},
	"mobulatest/faults_test.go": {"chaos.Seed": "it is what is tested: MOBULA_CHAOS_SEED is set"},
	"samples/bank/bank_test.go": {"chaos.Seed": "as the guide shows it: MOBULA_CHAOS_SEED is set"},
}

// TestTestsDrawFromASeed holds tests, and packages that only tests are made of, to seeds that are the same in every run.
func TestTestsDrawFromASeed(t *testing.T) {
	read, used := 0, make(map[string]bool)
	for _, path := range testSources(t) {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, d := range unseededIn(f) {
			used[path+": "+d.what] = true
			if unseeded[path][d.what] == "" {
				t.Errorf("%s:%d: %s %s", path, files.Position(d.at).Line, d.what, d.why)
			}
		}
	}
	if read < 300 {
		t.Errorf("%d files of tests were found", read)
	}
	for path, of := range unseeded {
		for what := range of {
			if !used[path+": "+what] {
				t.Errorf("unseeded lets %s use %s, which it does not: delete the line", path, what)
			}
		}
	}
}

// testSources are the files that are held to the rules: also those of other platforms, tags and modules.
func testSources(t *testing.T) (out []string) {
	t.Helper()
	var dirs []string
	for path, p := range packages(t) {
		if p.ours() && (slices.Contains(p.Imports, "testing") || slices.Contains(forTests, short(path))) {
			dirs = append(dirs, short(path))
		}
	}
	for _, dir := range forTests {
		if p := packages(t)[module+"/"+dir]; p == nil || slices.Contains(p.Imports, "testing") {
			t.Errorf("forTests names %s, which is no package, or imports testing: delete it", dir)
		}
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, err = filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, ".go") && slices.Contains(dirs, filepath.Dir(path)):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// drawn is a place where a file draws at random from no seed.
type drawn struct {
	at        token.Pos
	what, why string
}

// unseededIn gives such places.
func unseededIn(f *ast.File) (out []drawn) {
	names := make(map[string]string) // of imports, as the file has them
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := strings.TrimSuffix(path, "/v2")
		name = name[strings.LastIndex(name, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = path
		if d, ok := draws[path]; ok && name == "." {
			out = append(out, drawn{i.Pos(), `"." of ` + path, d.instead})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		of, name := selected(n)
		if d, ok := draws[names[of]]; ok && slices.Contains(d.names, name) != d.only {
			out = append(out, drawn{n.Pos(), of + "." + name, d.instead})
		}
		return true
	})
	for _, d := range f.Decls {
		out = append(out, clockSeeds(d, names)...)
	}
	slices.SortFunc(out, func(a, b drawn) int { return int(a.at - b.at) })
	return out
}

// clockSeeds gives the places where what is called a seed, or goes to what takes one, is of the clock: directly, or by a variable of the same function.
func clockSeeds(d ast.Decl, names map[string]string) (out []drawn) {
	of := make(map[string]bool) // variables that have the time
	clock := func(e ast.Expr) (found bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			pkg, name := selected(n)
			id, variable := n.(*ast.Ident)
			_, later := n.(*ast.FuncLit)
			found = found || names[pkg] == "time" && name == "Now" || variable && of[id.Name]
			return !found && !later
		})
		return found
	}
	seed := func(name string) bool { return strings.Contains(strings.ToLower(name), "seed") }
	ast.Inspect(d, func(n ast.Node) bool {
		found := false
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				from := n.Rhs[min(i, len(n.Rhs)-1)]
				switch name := lastName(to); {
				case !clock(from):
				case seed(name):
					found = true
				case name != "" && isNumber(from):
					of[name] = true
				}
			}
		case *ast.ValueSpec:
			for i, from := range n.Values {
				found = found || clock(from) && seed(n.Names[min(i, len(n.Names)-1)].Name)
			}
		case *ast.KeyValueExpr:
			found = seed(lastName(n.Key)) && clock(n.Value)
		case *ast.CallExpr:
			pkg, name := selected(n.Fun)
			random := strings.HasPrefix(names[pkg], "math/rand") || names[pkg] == "mobula/chaos" && name == "New"
			found = (random || seed(lastName(n.Fun))) && slices.ContainsFunc(n.Args, clock)
		}
		if found {
			out = append(out, drawn{n.Pos(), "a seed from the clock", "is another one at each run: use testkit.Seed"})
		}
		return !found
	})
	return out
}

// isNumber tells whether an expression makes a number of a time: what lasts is measured with the clock as well.
func isNumber(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && (strings.HasPrefix(s.Sel.Name, "Unix") || s.Sel.Name == "Nanosecond")
		return !found
	})
	return found
}

// selected gives the two names of a selector that has but two.
func selected(n ast.Node) (of, name string) {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok {
			return id.Name, s.Sel.Name
		}
	}
	return "", ""
}

// lastName is what an expression calls what it names: b of a.b.
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func TestTheSeedRules(t *testing.T) {
	for _, c := range []struct{ imports, body, want string }{
		{`"math/rand/v2"`, `var r *rand.Rand = rand.New(rand.NewPCG(1, 2)); func f() int { return r.IntN(3) }`, ""},
		{`"math/rand"`, `var r = rand.New(rand.NewSource(7))`, ""},
		{`"mobula/internal/testkit"`, `func f(t *testing.T) { testkit.Check(t, nil); testkit.Rand(t) }`, ""},
		{`"pgregory.net/rapid"`, `func f(f *testing.F) { f.Fuzz(rapid.MakeFuzz(nil)) }`, ""},
		{`"time"`, `func f() { begun := time.Now(); seed(1, func() { time.Since(begun) }) }`, ""},
		{`"time"`, `func f() { eachSeed(func(seed uint64) { _ = time.Now() }) }`, ""},
		{`"time"`, `func f() { at := time.Now().UnixNano(); use(at) }`, ""},
		{`"pgregory.net/rapid"`, `func f(t *testing.T) { rapid.Check(t, nil) }`, "rapid.Check"},
		{`"testing/quick"`, `func f(t *testing.T) { quick.Check(nil, nil) }`, "quick.Check"},
		{`r "pgregory.net/rapid"`, `var f = r.MakeCheck(nil)`, "r.MakeCheck"},
		{`. "pgregory.net/rapid"`, `func f(t *testing.T) { Check(t, nil) }`, `"." of pgregory.net/rapid`},
		{`"math/rand/v2"`, `func f() int { return rand.IntN(3) }`, "rand.IntN"},
		{`"math/rand/v2"`, `func f() int { return rand.N(3) }`, "rand.N"},
		{`"math/rand/v2"`, `var draw = rand.Int64N`, "rand.Int64N"},
		{`mrand "math/rand"`, `func f() { mrand.Seed(1) }`, "mrand.Seed"},
		{`"math/rand"`, `func f() { rand.Shuffle(3, nil) }`, "rand.Shuffle"},
		{`"math/rand"; "time"`, `var r = rand.New(rand.NewSource(time.Now().UnixNano()))`, "a seed from the clock"},
		{`"math/rand/v2"; "time"`, `func f() { now := uint64(time.Now().UnixNano()); use(rand.NewPCG(now, 0)) }`, "a seed from the clock"},
		{`"time"`, `func f() { seed := uint64(time.Now().UnixNano()); use(seed) }`, "a seed from the clock"},
		{`"time"`, `var Seed = time.Now().Unix()`, "a seed from the clock"},
		{`clock "time"`, `func f() { run(Config{Seed: uint64(clock.Now().Nanosecond())}) }`, "a seed from the clock"},
		{`"time"`, `func f(c *Config) { c.Seed = uint64(time.Now().Unix()) }`, "a seed from the clock"},
		{`"time"`, `func f() { use(seeded(uint64(time.Now().Unix()))) }`, "a seed from the clock"},
		{`"mobula/chaos"; "time"`, `var p = chaos.New(uint64(time.Now().Unix()))`, "a seed from the clock"},
		{`"mobula/chaos"`, `var p = chaos.New(chaos.Seed())`, "chaos.Seed"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\nimport ("+c.imports+")\n"+c.body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := unseededIn(f)
		switch {
		case c.want == "" && len(found) != 0:
			t.Errorf("%s: found %v", c.body, found)
		case c.want != "" && (len(found) != 1 || found[0].what != c.want || !strings.Contains(found[0].why, "testkit.")):
			t.Errorf("%s: found %v, want %s", c.body, found, c.want)
		}
	}
}
