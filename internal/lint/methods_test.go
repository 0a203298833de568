package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods bounds the methods that a type declares: beyond it nobody knows any more which of them touch which of its fields.
const maxMethods = 60

// A type whose methods are too many is composed of parts, each with fields and methods of its own.
func TestTypesHaveFewMethods(t *testing.T) {
	root := filepath.Join("..", "..")
	count := make(map[string]int)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata" || e.Name() == "pb" || e.Name() == "bin"):
			return filepath.SkipDir
		case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				count[filepath.ToSlash(dir)+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for typ, n := range count {
		if n > maxMethods {
			t.Errorf("%s has %d methods, at most %d: compose it of parts with fields and methods of their own", typ, n, maxMethods)
		}
	}
}
