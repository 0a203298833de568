package mobulatest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mobula/internal/node"
)

// Python finds an interpreter that can import the modules: the one that MOBULA_PYTHON names, that of a .venv in the working
// directory or one above it, or python3. If there is none the test is skipped, or fails if REQUIRE_PYTHON is set. It also fails if the
// one that MOBULA_PYTHON names cannot import them.
func Python(t testing.TB, modules ...string) string {
	t.Helper()
	can := func(path string) bool {
		return exec.CommandContext(t.Context(), path, "-c", "import "+strings.Join(append([]string{"sys"}, modules...), ", ")).Run() == nil
	}
	if said := os.Getenv(node.EnvPython); said != "" {
		if !can(said) {
			t.Fatalf("mobulatest: %s=%s cannot import %s", node.EnvPython, said, strings.Join(modules, ", "))
		}
		return said
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("mobulatest: %v", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, ".venv", "bin", "python"); can(path) {
			return path
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if path, err := exec.LookPath("python3"); err == nil && can(path) {
		return path
	}
	none := fmt.Sprintf("there is no Python that can import %s: `make python` makes one", strings.Join(modules, ", "))
	if os.Getenv("REQUIRE_PYTHON") != "" {
		t.Fatal("mobulatest: REQUIRE_PYTHON is set, and " + none)
	}
	t.Skip(none)
	return ""
}
