package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mobula/actors"
	"mobula/gcs"
	"mobula/gcs/gcstest"
	"mobula/internal/client"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/internal/testkit"
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
		n.control.ask(gcs.List{Bucket: b}, func(r gcs.Reply) { ch <- r })
		r := testkit.Receive(t, "an answer", ch)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		for _, rec := range r.Records {
			keys = append(keys, rec.Key())
		}
		return keys
	}
	for _, b := range []gcs.Bucket{gcs.Nodes, gcs.Homes} { // a list is a view that watches feed
		testkit.Eventually(t, fmt.Sprint("home 0 alone in ", b), func() bool { return slices.Equal(list(b), []string{"0"}) })
	}
	if s := must[state.Status](t, c, state.MethodStatus, nil); s.Control != "up" {
		t.Errorf("the control plane is %q", s.Control)
	}
}

// Nodes that share a control plane have homes of their own, see each other, and have one table of names. One that starts again has its home again, in its
// next life.
func TestNodesShareAControlPlane(t *testing.T) {
	url := gcstest.Server(t)
	start := func(dir string) (*Node, *client.Client) {
		t.Helper()
		n, err := Start(t.Context(), Config{
			Dir: dir, Keep: true, GCS: []string{url}, Beat: 50 * time.Millisecond, StoreBytes: 8 << 20, StoreDir: filepath.Join(dir, "store"), CPUs: 1,
			Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := n.Attach(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return n, c
	}
	stop := func(n *Node, c *client.Client) {
		t.Helper()
		if err := errors.Join(c.Close(context.Background()), n.Close(context.Background())); err != nil {
			t.Error(err)
		}
	}
	dirA, dirB := keptDir(t), keptDir(t)
	a, ca := start(dirA)
	defer func() { stop(a, ca) }()
	b, cb := start(dirB)
	if h, g := a.numbers.Row(), b.numbers.Row(); h.Home == g.Home || h.Epoch != 1 || g.Epoch != 1 {
		t.Errorf("they have %+v and %+v", h, g)
	}
	if j, k := ca.Root().Task.Job(), cb.Root().Task.Job(); j == k {
		t.Errorf("both have a job %v", j)
	}
	sees := func(c *client.Client, want int) {
		t.Helper()
		until(t, c, state.MethodNodes, nil, func(p state.Page[state.Node]) bool {
			return len(p.Rows) == want && !slices.ContainsFunc(p.Rows, func(r state.Node) bool { return r.State != state.NodeAlive })
		})
	}
	sees(ca, 2)
	sees(cb, 2)
	claim := func(n *Node, c *client.Client) error {
		id := ids.ActorID(ids.Derive(ids.RootTask(c.Root().Task.Job(), 1), 1))
		_, err := n.control.askWait(t.Context(), gcs.Claim{Actor: gcs.ActorRecord{Namespace: "n", Name: "hits", Actor: id.String(), Job: id.Job(), Detached: true}})
		return err
	}
	if err := claim(a, ca); err != nil {
		t.Fatal(err)
	}
	if err := claim(b, cb); !errors.Is(err, errs.ErrNameTaken) {
		t.Errorf("the other's name: %v", err)
	}
	home := b.numbers.Row().Home
	stop(b, cb)
	sees(ca, 1)
	b, cb = start(dirB)
	defer func() { stop(b, cb) }()
	if h := b.numbers.Row(); h.Home != home || h.Epoch != 2 {
		t.Errorf("it comes back as %+v", h)
	}
	sees(ca, 2)
	if err := claim(b, cb); !errors.Is(err, errs.ErrNameTaken) { // whatever it reconciles is not the other's
		t.Errorf("the other's name then: %v", err)
	}
}

// A node whose control plane does not answer does not start, and says why.
func TestAControlPlaneThatIsNotThere(t *testing.T) {
	dir := keptDir(t)
	_, err := Start(t.Context(), Config{Dir: dir, Keep: true, GCS: []string{"nats://127.0.0.1:1"}, StoreBytes: 8 << 20, StoreDir: filepath.Join(dir, "store"), Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("got %v", err)
	}
}
