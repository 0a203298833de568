package languages

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// runsFrom tells on which node it runs, and from which file.
var runsFrom = mobula.Register0("e2e/runsFrom", func(ctx context.Context) (string, error) {
	select {
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	at, err := harness.NodeOfWorker()
	if err != nil {
		return "", err
	}
	file, err := os.Readlink("/proc/self/exe")
	return at + " " + file, err
})

func init() {
	// It has no executable any more when it runs tasks on two nodes, and tells from where they ran.
	harness.DriverBodies["everywhere"] = func(ctx context.Context) error {
		own, err := os.Executable()
		if err == nil {
			err = os.Remove(own)
		}
		if err != nil {
			return err
		}
		var from []string
		for nodes := map[string]bool{}; len(nodes) < 2; { // a large executable takes a while to reach the second one
			var refs []mobula.Ref[string]
			for range 12 {
				refs = append(refs, runsFrom.Go(ctx))
			}
			ran, err := mobula.GetAll(ctx, refs)
			if err != nil {
				return err
			}
			for _, f := range ran {
				node, _, _ := strings.Cut(f, " ")
				nodes[node] = true
			}
			from = append(from, ran...)
		}
		return os.WriteFile(own+".ran", []byte(strings.Join(from, "\n")), 0o600)
	}
	// The second node cannot take the executable: a task that must run there fails with the reason, others run on the first node.
	harness.DriverBodies["refused"] = func(ctx context.Context) error {
		_, err := runsFrom.Go(ctx, mobula.OnNode("2")).Get(ctx)
		if !errors.Is(err, mobula.ErrRuntimeSetup) || !strings.Contains(err.Error(), "node n2 cannot run the go program") || !strings.Contains(err.Error(), "takes at most 1000") {
			return fmt.Errorf("the second node, which has no room, says %v", err)
		}
		var refs []mobula.Ref[string]
		for range 6 {
			refs = append(refs, runsFrom.Go(ctx))
		}
		_, err = mobula.GetAll(ctx, refs)
		return err
	}
}

// anotherExecutable is a copy of this program in a place of its own, which is not the same by its hash.
func anotherExecutable(t *testing.T, more string) (path, hash string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	path = filepath.Join(harness.TempDir(t), "driver")
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), io.MultiReader(in, strings.NewReader(more)))
	if closeErr := out.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	return path, hex.EncodeToString(h.Sum(nil))
}

// addresses are those of nodes, for drivers.
func addresses(nodes []*node.Node) (out []string) {
	for _, n := range nodes {
		out = append(out, n.Address())
	}
	return out
}

// inCache are the blobs that a node has in its cache.
func inCache(t *testing.T, address string) map[string]time.Time {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(filepath.Dir(address), "blobs"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	found := make(map[string]time.Time)
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name()] = info.ModTime()
	}
	return found
}

// everywhere runs a driver of some executable, and checks that its tasks ran on both nodes: on the second one from a file of that node.
func everywhere(t *testing.T, nodes []string, exe, hash string) {
	t.Helper()
	harness.LaunchDriverOf(t, exe, nodes[0], "everywhere").Stop(t)
	ran, err := os.ReadFile(exe + ".ran")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{exe + " (deleted)", filepath.Join(filepath.Dir(nodes[1]), "blobs", hash)} {
		if line := fmt.Sprintf("%s %s", nodes[i], want); !strings.Contains(string(ran)+"\n", line+"\n") {
			t.Errorf("no task ran as %q, but as\n%s", line, ran)
		}
	}
}

// The executable of a driver reaches a node that does not have it, though its file is gone; a second job with the same finds it there.
func TestAnExecutableReachesAnotherNode(t *testing.T) {
	nodes := addresses(harness.StartNodes(t, 1, 2))
	exe, hash := anotherExecutable(t, "one")
	everywhere(t, nodes, exe, hash)
	if have := inCache(t, nodes[1]); len(have) != 1 {
		t.Fatalf("the second node has %v, want %s alone", have, hash)
	}
	again, _ := anotherExecutable(t, "one")
	everywhere(t, nodes, again, hash)
	other, otherHash := anotherExecutable(t, "two")
	everywhere(t, nodes, other, otherHash)
	if have := inCache(t, nodes[1]); len(have) != 2 {
		t.Errorf("the second node has %v", have)
	}
	if have := inCache(t, nodes[0]); len(have) != 0 {
		t.Errorf("the first node, whose job it was, has %v", have)
	}
}

// A node that has no room for a driver's executable says so, and nobody waits for it.
func TestANodeWithoutRoomIsNamed(t *testing.T) {
	nodes := harness.StartNodesWith(t, func(i int, cfg *node.Config) {
		if i == 1 {
			cfg.BlobBytes = 1000
		}
	}, 1, 2)
	exe, _ := anotherExecutable(t, "large")
	harness.LaunchDriverOf(t, exe, nodes[0].Address(), "refused").Stop(t) // it checks its errors
	if have := inCache(t, nodes[1].Address()); len(have) != 0 {
		t.Errorf("the second node has %v", have)
	}
}
