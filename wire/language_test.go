package wire

import (
	"encoding/hex"
	"strings"
	"testing"
)

// A function's name says whether a file has its code: not one that the worker imports, one that is a value, or one whose own name has colons.
func TestTheFileOfAPythonFunction(t *testing.T) {
	sha := strings.Repeat("0a", 32)
	for name, want := range map[string]string{
		"py:mine.f:" + sha: sha, "py:a:b:" + sha: sha,
		"py:mine.f": "", "py:mine.f:" + sha + "+": "", "py:mine.f:" + sha[2:]: "", "py:mine.f:" + sha[1:] + "x": "", "py::" + sha: sha, "py:" + sha: "", "go/f:" + sha: "", "": "",
	} {
		hash, ok := PythonFunction(name)
		if got := hex.EncodeToString(hash[:]); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %s, %v", name, got, ok)
		}
	}
}
