package languages

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula/e2e/harness"
	"mobula/internal/node"
	"mobula/mobulatest"
)

// ownModules is what the Python program of that name prints.
type ownModules struct {
	Go     []string    // of each Go task: the node, and the file that it runs from
	Found  [][3]string // of each task: the node, where its module was, what its data are
	Nested []outerTask
	Actors []nodeAndNumber
}

type nodeAndNumber struct {
	Node string
	N    int
}

// outerTask is a task that has run others.
type outerTask struct {
	Node  string
	Inner []nodeAndNumber
}

// UnmarshalJSON reads a pair.
func (p *outerTask) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.Node, &p.Inner})
}

// UnmarshalJSON reads a pair.
func (p *nodeAndNumber) UnmarshalJSON(b []byte) error {
	return json.Unmarshal(b, &[]any{&p.Node, &p.N})
}

// copyOwnModules copies the program into a directory of its own.
func copyOwnModules(t *testing.T) (dir string) {
	t.Helper()
	dir = harness.TempDir(t)
	if err := os.CopyFS(dir, os.DirFS("testdata/own_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runOwnModules runs a copy of the program as a driver of a node.
func runOwnModules(t *testing.T, address, dir, how, goProgram string) (said ownModules) {
	t.Helper()
	out := runPython(t, filepath.Join(dir, "program.py"), address, how, goProgram)
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("it said %s: %v", out, err)
	}
	return said
}

// runPython runs a Python program, and gives what it prints.
func runPython(t *testing.T, args ...string) []byte {
	t.Helper()
	path := mobulatest.Python(t, "cbor2", "cloudpickle")
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := harness.Limit(t)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+root)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the program: %v\n%s", err, stderr.String())
	}
	return out
}

// ownModulesEverywhere runs a copy of the program as a driver of the first node. What it prints has to show that its tasks ran on both nodes: on the second
// with copies of the modules and of the Go program that are that node's.
func ownModulesEverywhere(t *testing.T, nodes []string, dir, goProgram, hash, how string) {
	t.Helper()
	said := runOwnModules(t, nodes[0], dir, how, goProgram)
	for i, file := range []string{goProgram, filepath.Join(filepath.Dir(nodes[1]), "blobs", hash)} {
		if want := nodes[i] + " " + file; !slices.Contains(said.Go, want) {
			t.Errorf("no Go task ran as %q, but as %q", want, said.Go)
		}
	}
	at := make(map[string][]string) // where a node's tasks found the module
	for _, f := range said.Found {
		if !slices.Contains(at[f[0]], f[1]) {
			at[f[0]] = append(at[f[0]], f[1])
		}
		if f[2] != tableText {
			t.Errorf("a task read %q", f[2])
		}
	}
	for i, below := range []string{filepath.Join(dir, "mine"), filepath.Join(filepath.Dir(nodes[1]), "jobs")} {
		if found := at[nodes[i]]; len(found) != 1 || !strings.HasPrefix(found[0], below) {
			t.Errorf("on node %d the module was found at %q, want one place below %s", i+1, found, below)
		}
	}
	crossed := false
	for n, outer := range said.Nested {
		for k, inner := range outer.Inner {
			if inner.N != n*10+k {
				t.Errorf("function %d of task %d gave %d", k, n, inner.N)
			}
			crossed = crossed || outer.Node == nodes[1] && inner.Node == nodes[0]
		}
	}
	if !crossed {
		t.Errorf("no function that was defined on the second node ran on the first: %+v", said.Nested)
	}
	for _, a := range said.Actors {
		if a.N != len(tableText)+1 {
			t.Errorf("an actor has %+v", a)
		}
	}
}

// tableText is what the module mine has in its file.
const tableText = "a table of the program's own"

// The functions of a Python program, and the modules beside it with their data, reach another node: those of the driver, and those that a task there defines. So
// does the Go program whose functions it calls.
func TestAPythonProgramReachesAnotherNode(t *testing.T) {
	for _, how := range []string{"template", "fresh"} {
		t.Run(how, func(t *testing.T) {
			nodes := addresses(harness.StartNodes(t, 1, 2))
			goProgram, hash := anotherExecutable(t, how)
			ownModulesEverywhere(t, nodes, copyOwnModules(t), goProgram, hash, how)
		})
	}
}

// A node that stands by has the functions that may be wanted there before one is: a worker does not wait for them when the node that ran them has died.
func TestANodeThatStandsByHasTheFunctions(t *testing.T) {
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) {
		if i > 0 {
			cfg.Resources = map[string]int64{"spare": 1000}
		}
	}, 1, 1, 1)
	at := addresses(nodes)
	runPython(t, "testdata/stands_by/program.py", at[0], harness.TempDir(t), filepath.Dir(at[1]), filepath.Dir(at[2]))
}
