package checkout

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBringHasTheCommit(t *testing.T) {
	root, dir := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	do := func(args ...string) string {
		t.Helper()
		out, err := git(t.Context(), root, append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	do("init", "-q")
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(root, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		do("add", "f")
		do("commit", "-qm", text)
	}
	for _, c := range []struct{ commit, want string }{{"HEAD", "two"}, {"HEAD~1", "one"}, {"HEAD", "two"}} {
		name, err := Bring(t.Context(), root, dir, c.commit)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "f"))
		if err != nil || string(b) != c.want || name != do("rev-parse", "--short", c.commit) {
			t.Errorf("%s: %q %v, commit %s", c.commit, b, err, name)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("changed by a part"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Bring(t.Context(), root, dir, "none"); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("a commit that is not there: %v", err)
	}
}
