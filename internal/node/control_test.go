package node

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mobula/actors"
	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/state"
)

// A node of which nobody has asked a name runs no control plane. The first question starts it, and it knows of the jobs that
// there are.
func TestTheControlPlaneStartsWhenItIsNeeded(t *testing.T) {
	dir := t.TempDir()
	n, err := Start(t.Context(), Config{Dir: filepath.Join(dir, "n"), Keep: true, StoreBytes: 16 << 20, StoreDir: dir, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	gone, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := n.Attach(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, c, state.MethodStatus, nil, func(s state.Status) bool { return len(s.Jobs) == 1 })
	if s := must[state.Status](t, c, state.MethodStatus, nil); s.Control != "asleep" {
		t.Errorf("the control plane is %q", s.Control)
	}
	if slices.ContainsFunc(n.Components(), func(c actors.Info) bool { return c.Kind == "gcs" }) {
		t.Error("the tree has a control plane")
	}
	if _, err := os.Stat(filepath.Join(n.dir, "gcs")); err == nil {
		t.Error("it has files")
	}
	list := func(b gcs.Bucket) (keys []string) {
		t.Helper()
		ch := make(chan gcs.Reply, 1)
		n.ask(gcs.List{Bucket: b}, func(r gcs.Reply) { ch <- r })
		select {
		case r := <-ch:
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			for _, rec := range r.Records {
				keys = append(keys, rec.Key())
			}
		case <-time.After(20 * time.Second):
			t.Fatal("no answer")
		}
		return keys
	}
	eventually := func(want ...string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) { // a list is a view that watches feed
			got := list(gcs.Jobs)
			if slices.Equal(got, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("jobs %v, want %v", got, want)
			}
		}
	}
	job := c.Root().Task.Job()
	eventually(job.String())
	if s := must[state.Status](t, c, state.MethodStatus, nil); s.Control != "up" {
		t.Errorf("the control plane is %q", s.Control)
	}
	n.gcs.jobEnded(job)
	eventually()
	n.gcs.jobBegan(gcs.JobRecord{Job: ids.JobID(77)})
	eventually(ids.JobID(77).String())
}
