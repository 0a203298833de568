package internode

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// Whatever an owner and its scheduler or store say to one another goes between nodes, unless it is named here.
func TestEveryMessageOfAnOwnerHasAPlace(t *testing.T) {
	var have []string
	for _, list := range insides {
		for _, m := range list {
			have = append(have, fmt.Sprintf("%T", m))
		}
	}
	for _, c := range []struct {
		pkg, path, marker string
		but               []string
	}{
		{"sched", "../sched/msg.go", "schedEvent", nil},
		{"sched", "../sched/msg.go", "ownerMsg", []string{"Unable", "Awaited"}},
		{"objectstore", "../../objectstore/msg.go", "ownerMsg", []string{"Packed"}},
		{"objectstore", "../../objectstore/msg.go", "storeEvent", []string{
			"FromClient", "ClientJoined", "ClientGone", // of a node's own clients
			"Export", "ExportDone", "NodeGone", // of another node's store, and of the cluster
			"Pack", "JobOpened",
		}},
		{"owner", "../owner/peers.go", "peerMsg", []string{
			"Words",                              // PeerWords
			"Reached", "Rejoined", "Unreachable", // what a node tells its owners
		}},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), c.path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != c.marker {
				continue
			}
			found++
			name := fn.Recv.List[0].Type.(*ast.Ident).Name
			if slices.Contains(have, c.pkg+"."+name) == slices.Contains(c.but, name) {
				t.Errorf("%s.%s: is it to go between nodes or not?", c.pkg, name)
			}
		}
		if found < 7 {
			t.Errorf("%s: %d methods %s", c.path, found, c.marker)
		}
	}
}
