package languages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mobula/e2e/harness"
)

// The first program of the README is built and run in a folder of its own, by the README's own commands: by a workspace, and by a go.mod alone.
func TestAProgramOfAnotherFolder(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	harness.Must(t, err)
	program := fencedBlocks(t, string(readme), "go", "package main\n")[0]
	workspace := fencedBlocks(t, string(readme), "sh", "go work init . ../mobula")[0]
	replace := fencedBlocks(t, string(readme), "sh", "-replace mobula=../mobula")[0]

	hello := t.TempDir()
	root, err := filepath.Abs("../..")
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(hello, "main.go"), []byte(program), 0o600))
	sh := func(commands string) string {
		t.Helper()
		commands = strings.ReplaceAll(commands, "../mobula", root) // what was built there before is not built again
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
		cmd.Dir = hello
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=", "GOFLAGS=-buildvcs=false", "MOBULA_ADDRESS=")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%v: %s", commands, err, stderr.String())
		}
		return string(out)
	}

	const want = "6 <nil>\n"
	if got := sh(workspace); got != want {
		t.Errorf("by a workspace it says %q, not %q", got, want)
	}
	harness.Must(t, os.Remove(filepath.Join(hello, "go.work")))
	sums, err := os.ReadFile(filepath.Join("..", "..", "go.sum")) // what the checksum database would say, of which a test should not need to ask
	harness.Must(t, err)
	harness.Must(t, os.WriteFile(filepath.Join(hello, "go.sum"), sums, 0o600))
	if got := sh(replace + "go run .\n"); got != want {
		t.Errorf("by its go.mod alone it says %q, not %q", got, want)
	}
}

// fencedBlocks gives the fenced blocks of a language that contain a text.
func fencedBlocks(t *testing.T, page, language, with string) (out []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if strings.Contains(m[1], with) {
			out = append(out, m[1])
		}
	}
	if len(out) == 0 {
		t.Fatalf("the README has no block of %s with %q", language, with)
	}
	return out
}
