package faults

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mobula"
	"mobula/e2e/harness"
	"mobula/internal/node"
)

// given is what a task's process was started with.
type given struct {
	Environ, Args, Open []string
	Told                []byte // what its open files have
}

var givenTo = mobula.Register0("e2e/given", func(context.Context) (g given, err error) {
	g.Environ, g.Args = os.Environ(), os.Args
	fds, err := os.ReadDir("/proc/self/fd")
	for _, fd := range fds {
		path := filepath.Join("/proc/self/fd", fd.Name())
		to, err := os.Readlink(path)
		if err != nil {
			continue // it was that of the list
		}
		g.Open = append(g.Open, to)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() < 1<<20 {
			if b, err := os.ReadFile(path); err == nil {
				g.Told = append(g.Told, b...)
			}
		}
	}
	return g, err
})

// readsThere tells what a task can read of a file.
var readsThere = mobula.Register1("e2e/readsThere", func(_ context.Context, path string) (int, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return -1, nil
	}
	return len(b), err
})

// keysOf are the secrets in a node's directory, by name, in each form in which they may be told.
func keysOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return b
	}
	out := make(map[string][]byte)
	if key := read("credentials.pem"); len(key) > 100 {
		out["the node's private key"] = bytes.Split(key, []byte("\n"))[1]
	}
	var known struct {
		Keys [][]byte `json:"gossip_keys"`
	}
	if err := json.Unmarshal(read("cluster.json"), &known); err != nil || len(known.Keys) == 0 {
		t.Fatalf("no key of the gossip: %v", err)
	}
	out["the gossip's key"], out["the gossip's key, in hex"], out["the gossip's key, in base64"] = known.Keys[0], []byte(hex.EncodeToString(known.Keys[0])), []byte(base64.StdEncoding.EncodeToString(known.Keys[0]))
	if secret := bytes.TrimSpace(read("cluster.secret")); len(secret) > 0 {
		out["the cluster's secret"] = secret
	}
	return out
}

// A worker is given no key of the cluster, and no address of it: not in its environment, its arguments or its files. Nor does a data node's directory have the
// secret, or the authority's row.
func TestAWorkerIsGivenNoKey(t *testing.T) {
	nodes := startCluster(t, 2)
	ctx, _ := harness.ConnectTo(t, nodes[0])
	harness.RanOn(ctx, t, nodes)
	for i, n := range nodes {
		dir := filepath.Dir(n.Address())
		got, err := givenTo.Go(ctx, mobula.OnNode(strconv.Itoa(i))).Get(ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := []byte(strings.Join(slices.Concat(got.Environ, got.Args, got.Open), "\n"))
		all = append(all, got.Told...)
		for what, key := range keysOf(t, dir) {
			if bytes.Contains(all, key) {
				t.Errorf("a worker of %s is given %s", n.Address(), what)
			}
		}
		for _, other := range nodes {
			if bytes.Contains(all, []byte(other.ClusterAddress())) {
				t.Errorf("a worker of %s is told of %s", n.Address(), other.ClusterAddress())
			}
		}
		for _, to := range got.Open {
			if strings.HasPrefix(to, dir) && !strings.Contains(to, "/logs/") && !strings.Contains(to, ".job") {
				t.Errorf("a worker of %s has %s open", n.Address(), to)
			}
		}
	}
	for _, name := range []string{"cluster.secret", "authority.json"} {
		if _, err := os.Stat(filepath.Join(filepath.Dir(nodes[1].Address()), name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a data node has %s: %v", name, err)
		}
	}
}

// What code of the node's user can do all the same; docs/guide/security.md lists it: it reads the node's credentials, and on a control-plane server the secret.
func TestCodeOfTheSameUserReadsTheNodesKeys(t *testing.T) {
	nodes := startCluster(t, 2)
	ctx, _ := harness.ConnectTo(t, nodes[1])
	harness.RanOn(ctx, t, nodes)
	for _, c := range []struct {
		of   *node.Node
		name string
		can  bool
	}{
		{nodes[1], "credentials.pem", true}, {nodes[1], "cluster.secret", false}, {nodes[0], "credentials.pem", true}, {nodes[0], "cluster.secret", true},
	} {
		n, err := readsThere.Go(ctx, mobula.V(filepath.Join(filepath.Dir(c.of.Address()), c.name))).Get(ctx)
		if err != nil || (n > 0) != c.can {
			t.Errorf("a task reads %d bytes of %s of node %s, %v; want that it can: %v", n, c.name, c.of.Name(), err, c.can)
		}
	}
}
