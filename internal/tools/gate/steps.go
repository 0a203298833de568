package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// step is a row of the table: a command, or a suite, which the judge runs.
type step struct {
	name    string
	says    string
	limit   time.Duration // above those of what it runs
	command []string
	suites  func(e env) ([]namedSuite, error)
}

// namedSuite is a row of its own in the table.
type namedSuite struct {
	name string
	suite
}

// env is what the steps of a run share.
type env struct {
	python string // the interpreter of the tests' environment
	root   string // of the tree
	out    io.Writer
	flags  []string // of go test
}

// steps in the order in which they run: the cheapest first. A command that fails ends the run; tests go on, so that one run shows what fails.
var steps = []step{
	{name: "lint", says: "golangci-lint, the rules of internal/lint, ruff", limit: 20 * time.Minute, command: words("make --no-print-directory lint")},
	{name: "vet", says: "go vet", limit: 10 * time.Minute, command: words("go vet ./...")},
	{name: "types", says: "mypy", limit: 10 * time.Minute, command: words("make --no-print-directory mypy")},
	{name: "packages", says: "the tests of all Go packages that start no process", limit: 30 * time.Minute, suites: quietPackages},
	{name: "processes", says: "the tests of the others, one package at a time", limit: 20 * time.Minute, suites: loudPackages},
	{name: "docs", says: "the tests of what makes the site", limit: 20 * time.Minute, suites: docs},
	{name: "python", says: "the tests of the Python SDK", limit: 25 * time.Minute, suites: python},
	{name: "peers", says: "the tests of the benchmarks beside peers", limit: 25 * time.Minute, suites: peers},
}

// loud are the packages whose tests start processes, most of them nodes, several at a time: two such packages at once disturb each other. With
// three dots all that are below the directory, too.
var loud = words("benchmarks/actorbench benchmarks/mobench cmd/mobula e2e/... internal/netns/... internal/node mobulatest raylet/pool/proc samples/...")

// elsewhere are packages that another step runs.
var elsewhere = words("internal/lint")

// packagesOf lists the module's packages with tests that the patterns match, or those that none of them does.
func packagesOf(e env, patterns []string, not bool) ([]string, error) {
	cmd := exec.Command("go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir, cmd.Stderr = e.root, e.out
	b, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	in := func(p string, dirs []string) bool {
		_, dir, _ := strings.Cut(p, "/")
		return slices.ContainsFunc(dirs, func(d string) bool {
			above, all := strings.CutSuffix(d, "/...")
			return dir == above || all && strings.HasPrefix(dir, above+"/")
		})
	}
	return slices.DeleteFunc(strings.Fields(string(b)), func(p string) bool { return in(p, elsewhere) || in(p, patterns) == not }), nil
}

func quietPackages(e env) ([]namedSuite, error) {
	packages, err := packagesOf(e, loud, true)
	return []namedSuite{{"packages", e.goTests(packages...)}}, err
}

func loudPackages(e env) ([]namedSuite, error) {
	packages, err := packagesOf(e, loud, false)
	var suites []namedSuite
	for _, p := range packages {
		suites = append(suites, namedSuite{p, e.goTests(p)})
	}
	return suites, err
}

func (e env) goTests(packages ...string) goTests {
	environ := []string{"CGO_ENABLED=0"}
	if slices.Contains(e.flags, "-race") {
		environ = nil // the race detector needs C
	}
	return goTests{dir: e.root, packages: packages, flags: e.flags, environ: environ, out: e.out}
}

func docs(e env) ([]namedSuite, error) {
	s := e.goTests("./...")
	s.dir = filepath.Join(e.root, "internal/tools/docs")
	return []namedSuite{{"docs", s}}, nil
}

const sdkDir, peersDir = "python", "benchmarks/peers"

func python(e env) ([]namedSuite, error) {
	return []namedSuite{{"python", e.pyTests(sdkDir, "-n", jobs(), "--dist", "loadfile")}}, nil
}

func peers(e env) ([]namedSuite, error) {
	return []namedSuite{{"peers", e.pyTests(peersDir)}}, nil
}

// suiteOf is the suite that a test is of.
func (e env) suiteOf(t test) suite {
	for _, dir := range []string{sdkDir, peersDir} {
		if strings.HasPrefix(t.unit, dir+"/") {
			return e.pyTests(dir)
		}
	}
	return e.goTests(t.unit)
}

func (e env) pyTests(dir string, flags ...string) pyTests {
	return pyTests{
		root: e.root, dir: dir, python: e.python, flags: flags, out: e.out,
		environ: []string{"MOBULA_BINARY=" + filepath.Join(e.root, "bin/mobula")},
		cache:   filepath.Join(e.root, ".cache/pytest", dir),
	}
}

// jobs is how many processes share the files of the Python tests.
func jobs() string {
	if n := os.Getenv("PYTEST_JOBS"); n != "" {
		return n
	}
	return "2"
}

// command runs a step's command.
func (e env) command(ctx context.Context, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = e.root, e.out, e.out
	endTogether(cmd)
	return cmd.Run()
}

// endTogether gives a command a process group of its own, which is ended whole with its context: tests have processes of their own.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
}

func words(s string) []string { return strings.Fields(s) }
