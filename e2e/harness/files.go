package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FilesOf lists the files below a directory.
func FilesOf(elem ...string) []string {
	var files []string
	_ = filepath.WalkDir(filepath.Join(elem...), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil // what is gone meanwhile is not there
	})
	return files
}

// SpillFiles lists the files with spilled objects below a directory.
func SpillFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	for _, f := range FilesOf(dir) {
		if strings.HasSuffix(f, ".spill") {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		t.Fatalf("nothing is spilled to %s: %v", dir, FilesOf(dir))
	}
	return out
}
