package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	_ "mobula/internal/node/gossip/memberlist" // nodes gossip
	"mobula/internal/state"
	"mobula/internal/trust"
)

// A node that is killed says nothing: others list it until the control plane has ended its life. One that is closed is in no list any more.
func TestAKilledNodeSaysNothing(t *testing.T) {
	var first *Node
	at := 4 * os.Getpid() // an address of the loopback, which tests of other processes do not have
	start := func(name string) *Node {
		at++
		cfg := Config{
			Name: name, CPUs: 1, StoreBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler),
			Wires: &Wires{Listen: fmt.Sprintf("127.%d.%d.%d", 1+at/254/256%254, at/254%256, 1+at%254)},
		}
		if first != nil {
			token, err := first.MakeToken(t.Context(), trust.Data, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Wires.Join, cfg.Wires.Token = []string{first.ClusterAddress()}, token
		}
		n, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	first = start("first")
	killed, closed := start("killed"), start("closed")
	c, err := first.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(p state.Page[state.Node], id string) bool {
		return slices.ContainsFunc(p.Rows, func(r state.Node) bool { return r.ID == id && r.State != state.NodeDead })
	}
	until(t, c, state.MethodNodes, nil, func(p state.Page[state.Node]) bool { return listed(p, killed.ID()) && listed(p, closed.ID()) })
	if err := killed.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := until(t, c, state.MethodNodes, nil, func(p state.Page[state.Node]) bool { return !listed(p, closed.ID()) })
	if !listed(p, killed.ID()) {
		t.Errorf("the killed node has said goodbye: %+v", p.Rows)
	}
	until(t, c, state.MethodNodes, nil, func(p state.Page[state.Node]) bool { return !listed(p, killed.ID()) })
}
