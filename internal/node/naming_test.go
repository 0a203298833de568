package node

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula/gcs/gcstest"
)

// A node that is started again in its directory, by whichever process, is called what it was before. A copy of the directory that was given an identity of its own is not.
func TestANodeKeepsItsName(t *testing.T) {
	dir := keptDir(t)
	start := func(name string) string {
		t.Helper()
		n, err := Start(t.Context(), Config{Name: name, Dir: dir, Keep: true, NoGCS: true, StoreBytes: 8 << 20, StoreDir: filepath.Join(dir, "store"), CPUs: 1})
		if err != nil {
			t.Fatal(err)
		}
		name = n.Name()
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if first, again := start(""), start(""); first != again {
		t.Errorf("it is called %q, and %q when it is started again", first, again)
	}
	if told, again := start("n2"), start(""); told != "n2" || again != "n2" {
		t.Errorf("it was told to be n2, and is called %q, and %q when it is started again", told, again)
	}
	for _, file := range []string{"identity", "home"} {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	if name := start(""); name == "n2" {
		t.Error("another node has its name")
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if name := start(""); !strings.HasPrefix(name, host+"-") {
		t.Errorf("it is called %q", name)
	}
}

// A name that a node was told once, and another living node has meanwhile, is that node's.
func TestANodeLeavesItsNameToAnotherThatLives(t *testing.T) {
	url := gcstest.Server(t)
	start := func(dir, name string) *Node {
		t.Helper()
		n, err := Start(t.Context(), Config{
			Name: name, Dir: dir, Keep: true, GCS: []string{url}, StoreBytes: 8 << 20, StoreDir: filepath.Join(dir, "store"), CPUs: 1, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	stop := func(n *Node) {
		t.Helper()
		if err := n.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mine, theirs := keptDir(t), keptDir(t)
	stop(start(mine, "n2"))
	other := start(theirs, "n2")
	defer stop(other)
	n := start(mine, "")
	if n.Name() == "n2" {
		t.Error("two nodes that live have one name, which nobody gave them")
	}
	stop(n)
	again := start(mine, "n2")
	defer stop(again)
	if again.Name() != "n2" {
		t.Errorf("it is called %q, and was told n2", again.Name())
	}
}
