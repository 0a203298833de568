package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Tidy are a package's tests, for its TestMain, with a temporary directory of their own. If they pass and have left anything there, they fail: it was
// written after the cleanup that removes it, or by a process that no test waits for.
func Tidy(m Tests) Tests { return tidy{m} }

// Tests are a *testing.M.
type Tests interface{ Run() int }

type tidy struct{ tests Tests }

func (t tidy) Run() int {
	code, err := t.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testkit:", err)
		return 1
	}
	return code
}

func (t tidy) run() (code int, err error) {
	dir, err := os.MkdirTemp("", "t") // short: a socket's path has 108 bytes at most
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 0, err
	}
	if code = t.tests.Run(); code != 0 {
		return code, nil
	}
	switch left, err := leftIn(dir); {
	case err != nil:
		return 0, err
	case len(left) > 0:
		return 0, fmt.Errorf("the tests passed, and left in the temporary directory %q", left)
	}
	return 0, nil
}

// leftIn names what is left in a temporary directory. The directory of this user's nodes may stay once it is empty: a node that removed it could take it
// from one that begins.
func leftIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	ours := "mobula-" + strconv.Itoa(os.Getuid())
	if !slices.Contains(left, ours) {
		return left, nil
	}
	nodes, err := os.ReadDir(filepath.Join(dir, ours))
	if len(nodes) == 0 {
		left = slices.DeleteFunc(left, func(name string) bool { return name == ours })
	}
	return left, err
}
