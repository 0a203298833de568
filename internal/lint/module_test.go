package lint

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const module = "mobula"

// root is the module's directory, seen from here.
const root = "../.."

// pkg is what go list says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	Export     string // file with what the compiler exports, where it was asked for
	GoFiles    []string
	Imports    []string
	Standard   bool
	Module     *struct{ Path string }
}

// ours tells whether the package is of this module.
func (p *pkg) ours() bool { return p.Module != nil && p.Module.Path == module }

// list asks go list for packages, and for all that they import if args say so.
func list(args ...string) (map[string]*pkg, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,Imports,Standard,Module"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	all := make(map[string]*pkg)
	for d := json.NewDecoder(out); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, cmd.Wait()
		} else if err != nil {
			return nil, errors.Join(err, cmd.Wait())
		}
		all[p.ImportPath] = p
	}
}

// whole is every package of the module and all that these import, without tests.
var whole = sync.OnceValues(func() (map[string]*pkg, error) { return list("-deps", "./...") })

// packages gives whole. go test keeps a result until a file changes that the test has looked at: it looks at all of the module's.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	all, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range all {
		if !p.ours() {
			continue
		}
		n++
		for _, name := range append(p.GoFiles, ".") {
			if _, err := os.Stat(filepath.Join(p.Dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 50 {
		t.Fatalf("go list knows %d packages of the module", n)
	}
	return all
}

// short is a package's path within the module.
func short(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// in tells whether a package is of a directory or below it.
func in(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// words reads a list that a table is easier to read with.
func words(s string) []string { return strings.Fields(s) }
