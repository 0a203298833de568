package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mobula/internal/testkit"
)

// planted is what a Go package of these tests begins with: second tells whether it is asked for a second time, also by another process.
const planted = `package a

import (
	"os"
	"testing"
)

func second(name string) bool {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
	}
	return err != nil
}

func TestGood(t *testing.T) {}
`

func TestPlantedGoFaults(t *testing.T) {
	for _, c := range []struct{ name, code, says string }{
		{"all pass", ``, ""},
		{"a test that always fails", `func TestBad(t *testing.T) { t.Error("always") }`, "FAILED planted/a.TestBad"},
		{"a test that fails every second time", `func TestOdd(t *testing.T) { if !second("odd") { t.Error("once") } }`, "FLAKY planted/a.TestOdd"},
		{"a subtest that fails every second time", `func TestOdd(t *testing.T) { t.Run("sub", func(t *testing.T) { if !second("odd") { t.Error("once") } }) }`, "FLAKY planted/a.TestOdd"},
		{"a panic by chance", `func TestPanic(t *testing.T) { if !second("panic") { panic("once") } }`, "FLAKY planted/a,"},
		{"a panic always", `func TestPanic(t *testing.T) { panic("always") }`, "FAILED planted/a:"},
		{"a panic beside a test that runs", `func TestRuns(t *testing.T) { t.Parallel(); if !second("runs") { select {} } }
			func TestPanic(t *testing.T) {
				t.Parallel()
				for {
					if _, err := os.Stat("runs"); err == nil { break }
				}
				if !second("panic") { panic("once") }
			}`, "FLAKY planted/a,"},
		{"an exit without a word", `func TestMain(m *testing.M) { m.Run(); if !second("exit") { os.Exit(1) } }`, "FLAKY planted/a,"},
		{"code that does not build", `func TestBuild(t *testing.T) { none() }`, "does not build"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, "go.mod", "module planted\n\ngo 1.25\n")
			write(t, dir, "a/a_test.go", planted+c.code+"\n")
			var out terminal
			s := goTests{dir: dir, packages: []string{"./..."}, out: &out}
			judged(t, s, &out, c.says)
		})
	}
}

func TestPlantedPythonFaults(t *testing.T) {
	python, err := filepath.Abs("../../../.venv/bin/python")
	if err == nil {
		err = exec.CommandContext(testkit.Within(t), python, "-c", "import pytest, xdist").Run()
	}
	if err != nil {
		if os.Getenv("REQUIRE_PYTHON") != "" {
			t.Fatal(err)
		}
		t.Skipf("make python has not run: %v", err)
	}
	const second = `
import os, sys, pytest

def second(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return False
    except FileExistsError:
        return True

def test_good():
    pass

`
	for _, c := range []struct{ name, code, says string }{
		{"all pass", "", ""},
		{"a test that always fails", "def test_bad():\n    assert False", "FAILED py/tests/test_a.py::test_bad"},
		{"one of several cases that fails every second time", "@pytest.mark.parametrize('x', ['a b', 'c/d'])\ndef test_odd(x):\n    assert x == 'a b' or second('odd')", "FLAKY py/tests/test_a.py::test_odd[c/d]"},
		{"a process that ends by chance", "def test_exit():\n    if not second('exit'):\n        os._exit(3)", "FLAKY py/tests/test_a.py::test_exit"},
		{"a file that cannot be read", "import nothing_of_this_name", "FAILED py/tests/test_a.py:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root, "py/pytest.ini", "[pytest]\ntestpaths = tests\n")
			write(t, root, "py/tests/test_a.py", second+c.code+"\n")
			write(t, root, "py/tests/test_b.py", "def test_other():\n    pass\n")
			var out terminal
			s := pyTests{root: root, dir: "py", python: python, flags: []string{"-n", "2", "--dist", "loadfile"}, cache: filepath.Join(root, "cache"), out: &out}
			judged(t, s, &out, c.says)
		})
	}
}

// terminal plays one: what a program prints beside its events comes while those are read.
type terminal struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.Write(b)
}

func (t *terminal) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String()
}

// judged runs a suite, and wants a line in the report that says this: nothing of FLAKY and FAILED for "".
func judged(t *testing.T, s suite, out *terminal, says string) {
	t.Helper()
	j := &judge{tries: triesOfTest, now: time.Now, keep: keeper(t.TempDir())}
	ok := j.run(t.Context(), s)
	var end bytes.Buffer
	report(&end, []row{{"planted", time.Second, ok}}, j, nil)
	if wrong := strings.Contains(end.String(), "FLAKY") || strings.Contains(end.String(), "FAILED "); !strings.Contains(end.String(), says) || wrong != (says != "") {
		t.Errorf("the report is\n%s, without %q. The run:\n%s", &end, says, out)
	}
	if ok == (strings.HasPrefix(says, "FAILED") || strings.Contains(says, "does not build")) {
		t.Errorf("passed: %v, with\n%s", ok, &end)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
