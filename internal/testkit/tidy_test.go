package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

type testsFunc func() int

func (f testsFunc) Run() int { return f() }

// A run that leaves something is not passed, whatever becomes of it; one that fails says so itself.
func TestTidy(t *testing.T) {
	nodes := "mobula-" + strconv.Itoa(os.Getuid())
	for _, c := range []struct {
		name   string
		leaves []string
		code   int
		want   int
	}{
		{"nothing", nil, 0, 0},
		{"a file", []string{"x"}, 0, 1},
		{"the empty directory of nodes", []string{nodes}, 0, 0},
		{"a node", []string{nodes + "/default"}, 0, 1},
		{"a file beside the directory of nodes", []string{nodes, "x"}, 0, 1},
		{"a failure", []string{"x"}, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			outside := t.TempDir()
			t.Setenv("TMPDIR", outside)
			got := Tidy(testsFunc(func() int {
				if os.TempDir() == outside {
					t.Error("the tests have no temporary directory of their own")
				}
				for _, name := range c.leaves {
					path := filepath.Join(os.TempDir(), name)
					err := os.MkdirAll(filepath.Dir(path), 0o700)
					if name == nodes {
						err = os.Mkdir(path, 0o700)
					} else if err == nil {
						err = os.WriteFile(path, nil, 0o600)
					}
					if err != nil {
						t.Error(err)
					}
				}
				return c.code
			})).Run()
			if got != c.want {
				t.Errorf("it ended with %d, want %d", got, c.want)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
				t.Errorf("%v, %v are left", left, err)
			}
		})
	}
}
