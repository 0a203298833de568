package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/e2e/harness"
)

// Another user of the machine, and the one who starts the node.
const (
	stranger = 65533
	user     = 65532
)

// give makes a file or directory a user's.
func give(t *testing.T, path string, uid int) {
	t.Helper()
	harness.Must(t, os.Lchown(path, uid, uid))
}

// identified makes a node's directory that has had a node of the identity.
func identified(t *testing.T, dir, identity string) {
	t.Helper()
	harness.Must(t, os.MkdirAll(dir, 0o700))
	harness.Must(t, os.WriteFile(filepath.Join(dir, "identity"), []byte(identity+"\n"), 0o600))
	for _, p := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "identity")} {
		give(t, p, user)
	}
}

// sharedDir is a directory as /tmp is.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := harness.TempDir(t)
	harness.Must(t, unix.Chmod(dir, 0o1777))
	return dir
}

// What another user has put in the way of a node in a shared place stops its start with an error that names it: nothing is
// written through it, and nothing waits for it.
func TestANodeStartsSafelyAmongStrangers(t *testing.T) {
	const identity = "00112233445566778899aabbccddeeff" // of which another user has heard
	for name, plant := range map[string]func(t *testing.T, tmp, dir, victim string) (named string){
		"the user's directory is another's": func(t *testing.T, _, dir, victim string) string {
			harness.Must(t, os.MkdirAll(dir, 0o777))
			harness.Must(t, os.Chmod(dir, 0o777))
			give(t, dir, stranger)
			give(t, filepath.Dir(dir), stranger)
			harness.Must(t, os.Symlink(victim, filepath.Join(dir, "node.lock")))
			return filepath.Dir(dir)
		},
		"the user's directory is a link": func(t *testing.T, _, dir, victim string) string {
			harness.Must(t, os.Symlink(filepath.Dir(victim), filepath.Dir(dir)))
			give(t, filepath.Dir(dir), stranger)
			return filepath.Dir(dir)
		},
		"the user's directory is open to all": func(t *testing.T, _, dir, _ string) string {
			harness.Must(t, os.Mkdir(filepath.Dir(dir), 0o700))
			harness.Must(t, os.Chmod(filepath.Dir(dir), 0o777))
			give(t, filepath.Dir(dir), user)
			return filepath.Dir(dir)
		},
		"the lock is a FIFO": func(t *testing.T, _, dir, _ string) string {
			harness.Must(t, os.MkdirAll(dir, 0o700))
			harness.Must(t, unix.Mkfifo(filepath.Join(dir, "node.lock"), 0o666))
			for _, p := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "node.lock")} {
				give(t, p, user)
			}
			return filepath.Join(dir, "node.lock")
		},
		"the index is another's": func(t *testing.T, tmp, dir, _ string) string {
			identified(t, dir, identity)
			path := filepath.Join(tmp, fmt.Sprintf("mobula-%d-", user)+identity+".index")
			harness.Must(t, os.WriteFile(path, nil, 0o666))
			harness.Must(t, os.Chmod(path, 0o666))
			give(t, path, stranger)
			return path
		},
		"the index is a link": func(t *testing.T, tmp, dir, victim string) string {
			identified(t, dir, identity)
			path := filepath.Join(tmp, fmt.Sprintf("mobula-%d-", user)+identity+".index")
			harness.Must(t, os.Symlink(victim, path))
			give(t, path, stranger)
			return path
		},
	} {
		t.Run(name, func(t *testing.T) {
			tmp := sharedDir(t)
			home := filepath.Join(tmp, "home") // the user's own
			harness.Must(t, os.Mkdir(home, 0o700))
			victim := filepath.Join(home, "victim")
			harness.Must(t, os.WriteFile(victim, []byte("precious"), 0o600))
			give(t, home, user)
			give(t, victim, user)
			dir := filepath.Join(tmp, "mobula-65532", "default")
			named := plant(t, tmp, dir, victim)
			_, err := harness.Launch(t, harness.NodeConfig{Dir: dir, CPUs: 1, Store: 16 << 20, StoreDir: tmp, UID: user})
			if err == nil || !strings.Contains(err.Error(), named) {
				t.Errorf("start: %v", err)
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
				t.Errorf("the victim has %q (%v)", b, err)
			}
		})
	}
}

// With nothing in its way a node of any user starts there.
func TestANodeOfAnotherUserStartsInASharedPlace(t *testing.T) {
	tmp := sharedDir(t)
	p := harness.MustLaunch(t, harness.NodeConfig{Dir: filepath.Join(tmp, "mobula-65532", "default"), CPUs: 1, Store: 16 << 20, StoreDir: tmp, UID: user})
	p.Stop(t)
}
