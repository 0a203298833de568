package node

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
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
		select {
		case r := <-ch:
			return r
		case <-time.After(20 * time.Second):
			t.Fatalf("%T was not answered", op)
			return gcs.Reply{}
		}
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
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r := ask(gcs.Lookup{Bucket: gcs.Actors, Key: rec.Key()})
		if errors.Is(r.Err, errs.ErrNotFound) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the name is still taken: %+v, %v", r.Records, r.Err)
		}
	}
}
