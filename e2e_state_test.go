package mobula_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestTheNodeTellsOfItself(t *testing.T) {
	c := mobulatest.Start(t, mobula.WithCPUs(2))
	ctx := c.Context(t.Context())
	dir := t.TempDir()
	held := e2eHold.Go(ctx, mobula.V(dir), mobula.V("a"), mobula.Label("labelled"))
	eventually(t, "it runs", exists(filepath.Join(dir, "a.began")))
	s, err := c.Status(ctx)
	if err != nil || s.Node != c.Node() || s.PID != os.Getpid() || s.Store.Limit == 0 || s.Address != c.Address() {
		t.Errorf("status %+v, %v", s, err)
	}
	tasks, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "name", Value: "labelled"}}})
	if err != nil || len(tasks.Rows) != 1 {
		t.Errorf("tasks %+v, %v", tasks, err)
	}
	a := spawn(ctx, t, 1)
	if err := a.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	actors, err := c.ListActors(ctx, mobula.Query{})
	if err != nil || len(actors.Rows) != 1 || actors.Rows[0].ID != a.ID() {
		t.Errorf("actors %+v, %v, want %v", actors, err, a)
	}
	put, err := mobula.Put(ctx, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := c.ListObjects(ctx, mobula.Query{})
	if err != nil || objects.Total == 0 {
		t.Errorf("objects %+v, %v", objects, err)
	}
	for _, id := range []string{held.ID(), put.ID()} {
		if x, err := c.Explain(ctx, id); err != nil {
			t.Errorf("explain %s: %+v, %v", id, x, err)
		}
	}
	if _, err := c.ListWorkers(ctx, mobula.Query{}); err != nil {
		t.Error(err)
	}
	parts, err := c.ListComponents(ctx, mobula.Query{})
	if err != nil || parts.Total < 3 {
		t.Errorf("components %+v, %v", parts, err)
	}
	if _, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "nonsense"}}}); !errors.Is(err, mobula.ErrInvalid) || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a field that is none: %v", err)
	}
	if err := note(filepath.Join(dir, "go"), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := held.Get(ctx); err != nil {
		t.Error(err)
	}
}
