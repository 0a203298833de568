package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// cores are the packages that decide: Step(now, event) gives effects, and whoever calls it acts. A package that has such a method is here.
var cores = words("gcs gcs/directory graph graph/run internal/direct internal/node/blobs internal/node/gather internal/node/jobs internal/node/member objectstore objectstore/spill raylet raylet/cluster raylet/memmon raylet/owner raylet/pool raylet/sched remote remote/clocks remote/membership remote/transfer telemetry/phases")

// parts are what cores leave to a package of their own, and the codecs of what they say. Those of raylet/internode
// and internal/trust are nobody's yet.
var parts = words("gcs/model graph/order internal/trust objectstore/alloc objectstore/record raylet/internode raylet/owner/record remote/membership/model")

// steppers have a Step of another kind.
var steppers = map[string]string{
	"graph/run/shell":       "the shell",
	"objectstore/shell":     "the shell, which counts how long a step took",
	"internal/world":        "a simulation, which steps the cores of whole nodes",
	"internal/node":         "the shell that hands on to the core of raylet/owner",
	"remote/shell":          "the shell, which saves what a step has changed",
	"remote/transfer/shell": "the shell, which drops what is said twice",
}

// standard are the packages of the standard library that only compute. What fmt or reflect imports in turn is their own affair.
var standard = words(`
	bytes cmp context container/heap container/list crypto/sha256 crypto/subtle encoding encoding/base64 encoding/binary encoding/hex encoding/json errors fmt hash hash/crc32 hash/fnv iter maps
	math math/big math/bits math/rand/v2 path reflect regexp slices sort strconv strings time unicode unicode/utf8 unsafe`)

// impure are the names of such packages that do more than compute: all but those listed after "only", or those listed.
var impure = map[string]struct {
	only  bool
	names []string
	why   string
}{
	"time": {names: words("Now Since Until After AfterFunc Tick NewTimer NewTicker Timer Ticker Sleep"), why: "the time comes with the step, timers go out as effects"},
	"fmt": {names: words("Print Printf Println Scan Scanf Scanln Sscan Sscanf Sscanln Fscan Fscanf Fscanln"),
		why: "a core writes nowhere"},
	"context":      {only: true, names: words("Canceled DeadlineExceeded"), why: "a core waits for nothing; it knows the errors"},
	"math/rand/v2": {only: true, names: words("New NewPCG NewChaCha8 NewZipf Rand Source PCG ChaCha8 Zipf"), why: "a core draws from the source that it was given"},
}

// permits say what else a package that cores import may use, and why it still decides nothing.
var permits = map[string]map[string]string{
	"internal/cborform": {"github.com/fxamacker/cbor/v2": "a codec"},
	"internal/errs": {
		"sync":                         "the table of a program's own errors, filled while packages initialise",
		"github.com/fxamacker/cbor/v2": "a codec",
	},
	"internal/protofield": {"google.golang.org/protobuf/encoding/protowire": "a codec"},
	"raylet/memmon":       {"github.com/dustin/go-humanize": "how bytes are written"},
	"raylet/pool":         {"golang.org/x/sys/unix": "how a signal is called"},
	"telemetry": {
		"context.Context":                    "a trace travels in one",
		"go.opentelemetry.io/otel/attribute": "values",
		"go.opentelemetry.io/otel/trace":     "values",
	},
	"telemetry/phases": {"go.opentelemetry.io/otel/attribute": "values"},
	"wire": {
		"google.golang.org/protobuf/encoding/protowire": "a codec",
		"io":   "how a stream ends",
		"os":   "a message carries a descriptor",
		"sync": "buffers are used again",
	},
}

// TestCoresArePure follows each core's imports within the module, and holds every file on the way to the rules. Of modules of others only what permits name
// may be among them.
func TestCoresArePure(t *testing.T) {
	w := &walk{all: packages(t), read: make(map[string]*content), below: make(map[string][]string), used: make(map[string]bool)}
	for _, core := range slices.Concat(cores, parts) {
		if w.all[module+"/"+core] == nil {
			t.Errorf("%s is no package", core)
			continue
		}
		for _, wrong := range w.wrong(core) {
			t.Errorf("core %s: %s", core, wrong)
		}
	}
	for p, of := range permits {
		for what := range of {
			if !w.used[p+": "+what] {
				t.Errorf("permits lets %s use %s, which it does not: delete the line", p, what)
			}
		}
	}
}

// TestEveryCoreIsHeldPure finds cores by their Step, so that none stays outside the table.
func TestEveryCoreIsHeldPure(t *testing.T) {
	have := make(map[string]bool)
	for path, p := range packages(t) {
		if !p.ours() {
			continue
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "Step" {
					have[short(path)] = true
				}
			}
		}
	}
	for p := range have {
		if !slices.Contains(cores, p) && steppers[p] == "" {
			t.Errorf("%s has a Step, and is not in the table of cores", p)
		}
	}
	for _, p := range cores {
		if !have[p] {
			t.Errorf("%s has no Step, and is in the table of cores", p)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(text), "\n| cores |")
	row, _, _ = strings.Cut(row, "\n")
	for _, p := range cores {
		if !strings.Contains(row, "`"+p+"`") {
			t.Errorf("ARCHITECTURE.md does not name %s in its row of cores", p)
		}
	}
	for p, why := range steppers {
		if !have[p] {
			t.Errorf("steppers names %s (%s), which has no Step: delete the line", p, why)
		}
	}
}

// walk follows imports.
type walk struct {
	all   map[string]*pkg
	read  map[string]*content
	below map[string][]string // closures
	used  map[string]bool     // lines of permits
}

// content is what was found in a package's files.
type content struct {
	wrong   []string    // "file: what it must not do"
	imports [][2]string // a file, and a package of the module
}

// wrong gives what is wrong in a core's own files, and of each import that leads to something wrong where that is.
func (w *walk) wrong(core string) []string {
	c := w.content(core)
	out := slices.Clone(c.wrong)
	said := make(map[string]bool)
	for _, i := range c.imports {
		if far := w.closure(i[1]); len(far) > 0 && !said[i[1]] && !slices.Contains(slices.Concat(cores, parts), i[1]) { // which says so itself
			said[i[1]] = true
			out = append(out, fmt.Sprintf("%s: imports %s, which is not pure: %s (%d such)", i[0], i[1], far[0], len(far)))
		}
	}
	return out
}

// closure gives what is wrong in a package and in all that it imports.
func (w *walk) closure(p string) []string {
	if out, done := w.below[p]; done {
		return out
	}
	var out []string
	seen := map[string]bool{p: true}
	for todo := []string{p}; len(todo) > 0; todo = todo[1:] {
		c := w.content(todo[0])
		out = append(out, c.wrong...)
		for _, i := range c.imports {
			if !seen[i[1]] {
				seen[i[1]] = true
				todo = append(todo, i[1])
			}
		}
	}
	w.below[p] = out
	return out
}

// content holds a package's files to the rules, once.
func (w *walk) content(p string) *content {
	if c := w.read[p]; c != nil {
		return c
	}
	c := new(content)
	w.read[p] = c
	of := w.all[module+"/"+p]
	for _, name := range of.GoFiles {
		file := p + "/" + name
		found, next, err := check(filepath.Join(of.Dir, name))
		if err != nil {
			c.wrong = append(c.wrong, err.Error())
			continue
		}
		found = slices.DeleteFunc(found, func(what string) bool {
			what, _, _ = strings.Cut(what, ": ")
			w.used[p+": "+what] = permits[p][what] != ""
			return permits[p][what] != ""
		})
		for _, what := range found {
			c.wrong = append(c.wrong, file+": "+what)
		}
		for _, to := range next {
			c.imports = append(c.imports, [2]string{file, to})
		}
	}
	return c
}

// check gives what a file must not do, and which packages of the module it imports.
func check(path string) (found, next []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	found, next = checkFile(f)
	return found, next, nil
}

func checkFile(f *ast.File) (found, next []string) {
	bad := make(map[string]bool)
	names := make(map[string]string) // of imports, as the file has them
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := path[strings.LastIndex(path, "/")+1:]
		if name == "v2" {
			name = filepath.Base(filepath.Dir(path))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		names[name] = path
		switch {
		case in(path, module):
			next = append(next, short(path))
		case !slices.Contains(standard, path):
			bad[path] = true
		case name == ".":
			bad[`"." of `+path] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			bad["a go statement"] = true
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			bad["a channel"] = true
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				bad["a channel"] = true
			}
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok {
				path := names[of.Name]
				if not, ok := impure[path]; ok && slices.Contains(not.names, n.Sel.Name) != not.only {
					bad[path+"."+n.Sel.Name+": "+not.why] = true
				}
			}
		}
		return true
	})
	return slices.Sorted(maps.Keys(bad)), next
}

// What the rules find, and what they let pass.
func TestThePurityRules(t *testing.T) {
	for _, c := range []struct{ imports, body, want string }{
		{`"time"`, `var d time.Duration = 3 * time.Second; func f(at time.Time) bool { return at.After(at.Add(d)) }`, ""},
		{`"fmt"; "math/rand/v2"`, `func f(r *rand.Rand) string { return fmt.Sprint(r.IntN(3), rand.New(rand.NewPCG(1, 2))) }`, ""},
		{`"mobula/wire"`, `var _ wire.TaskSpec`, ""},
		{`"time"`, `var now = time.Now`, "time.Now"},
		{`clock "time"`, `func f() { clock.Sleep(1) }`, "time.Sleep"},
		{`"time"`, `type t struct{ *time.Timer }`, "time.Timer"},
		{`"fmt"`, `func f() { fmt.Println() }`, "fmt.Println"},
		{`"math/rand/v2"`, `func f() int { return rand.IntN(3) }`, "math/rand/v2.IntN"},
		{``, `func f() { go f() }`, "a go statement"},
		{``, `type t struct{ c chan int }`, "a channel"},
		{``, `func f() { select {} }`, "a channel"},
		{`"sync"`, `var mu sync.Mutex`, "sync"},
		{`"sync/atomic"`, `var n atomic.Int64`, "sync/atomic"},
		{`"os"`, `var _ = os.Args`, "os"},
		{`. "time"`, `var _ = Now`, `"." of time`},
		{`"github.com/asynkron/protoactor-go/actor"`, `var _ actor.Context`, "github.com/asynkron/protoactor-go/actor"},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport ("+c.imports+")\n"+c.body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := checkFile(f)
		switch {
		case c.want == "" && len(found) != 0:
			t.Errorf("%s: found %q", c.body, found)
		case c.want != "" && (len(found) != 1 || !strings.HasPrefix(found[0], c.want)):
			t.Errorf("%s: found %q, want %s", c.body, found, c.want)
		}
	}
}
