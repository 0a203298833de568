package harness

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/node"
)

// Must ends the test where there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// WantErr tells that an error is of a kind and its text has the words.
func WantErr(t *testing.T, what string, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v; want %v", what, err, kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// Works tells that a runtime is none the worse for what it has just seen.
func Works(t *testing.T, ctx context.Context) {
	t.Helper()
	if v, err := Add.Go(ctx, mobula.V(1.0), mobula.V(2.0)).Get(ctx); err != nil || v != 3 {
		t.Errorf("afterwards: %v, %v", v, err)
	}
}

// OwnerStats are those of all jobs of a node, added.
func OwnerStats(t *testing.T, ctx context.Context, n *node.Node) node.OwnerStats {
	t.Helper()
	all, err := n.OwnerStats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var sum node.OwnerStats
	for _, s := range all {
		sum.WorkersLost += s.WorkersLost
		sum.Retried += s.Retried
		sum.Isolated += s.Isolated
		sum.Reconstructed += s.Reconstructed
		sum.ActorRestarts += s.ActorRestarts
		sum.OOMKills += s.OOMKills
		sum.Leases += s.Leases
		sum.Tasks += s.Tasks
		sum.Objects += s.Objects
	}
	return sum
}
