package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// cleanups are what the runtime runs for garbage, by file and function, and why each waits for nothing but locks that are held briefly. The runtime
// runs them one after the other: those of the program are behind one that waits.
var cleanups = map[string]string{
	"internal/call/cell.go (*life).release":            "queues the handles; a full queue is flushed by another goroutine (client.TestReleasesDoNotWaitForTheNode)",
	"internal/call/stream.go (*streamEnd).dropped":     "leaves the stream in another goroutine",
	"internal/client/watchers_room.go ws.rooms.forget": "takes the lock of a table, which is held for one look-up",
}

func TestCleanupsOfTheRuntimeDoNotWait(t *testing.T) {
	found := map[string]string{}
	files := token.NewFileSet()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || (strings.HasPrefix(name, ".") && len(name) > 2) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && len(c.Args) > 1 {
				switch types.ExprString(c.Fun) {
				case "runtime.AddCleanup", "runtime.SetFinalizer":
					found[strings.TrimPrefix(filepath.ToSlash(path), "../../")+" "+types.ExprString(c.Args[1])] = ""
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		if cleanups[name] == "" {
			t.Errorf("%s: a cleanup of the runtime that is not in the list: may it wait?", name)
		}
	}
	for name := range cleanups {
		if _, ok := found[name]; !ok {
			t.Errorf("%s is in the list, and nowhere else", name)
		}
	}
}
