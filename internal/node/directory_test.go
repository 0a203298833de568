package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// A name that the control plane has for an actor of which no owner knows, from before a restart of the node, is free again.
func TestNamesThatAnEarlierLifeLeftAreReconciled(t *testing.T) {
	dir, err := os.MkdirTemp("", "mobula-names-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg := Config{Dir: dir, Keep: true, StoreBytes: 16 << 20, StoreDir: dir, CPUs: 1}
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(op gcs.Op) gcs.Reply {
		t.Helper()
		ch := make(chan gcs.Reply, 1)
		n.control.ask(op, func(r gcs.Reply) { ch <- r })
		return testkit.Receive(t, fmt.Sprintf("an answer to %T", op), ch)
	}
	id := ids.ActorID(ids.Derive(ids.RootTask(77, 1), 1))
	rec := gcs.ActorRecord{Namespace: "n", Name: "left", Actor: id.String(), Node: "another name of it", Job: 77, Detached: true}
	if r := ask(gcs.Claim{Actor: rec}); r.Err != nil {
		t.Fatal(r.Err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err = Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	testkit.Eventually(t, "the name free", func() bool {
		return errors.Is(ask(gcs.Lookup{Bucket: gcs.Actors, Key: rec.Key()}).Err, errs.ErrNotFound)
	})
}
