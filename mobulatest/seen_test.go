package mobulatest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// A list tells of each node what it has free. Of a node that was killed the others say at once that nobody is there, and of one that is dead that it is; when the
// node that carries the tables is gone, the last one says that as well.
func TestNodesThatAreNotThereAreNamed(t *testing.T) {
	c := Cluster(t, 3)
	on := c.Connect(1)
	ctx := limit(t, on.Context(t.Context()))
	p, err := on.ListNodes(ctx, mobula.Query{})
	if err != nil || len(p.Rows) != 3 || len(p.Unreachable) > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	for i, n := range p.Rows {
		if n.ID != c.ID(i) || n.Resources["CPU"] != 1 || n.Free["CPU"] != 1 || n.StoreLimit != storeBytes || n.State != "ALIVE" || (n.Role == "control-plane") != (i == 0) {
			t.Errorf("node %d is listed as %+v", i, n)
		}
	}

	c.Kill(2)
	workers, err := on.ListWorkers(ctx, mobula.Query{})
	if err != nil || len(workers.Unreachable) != 1 || workers.Unreachable[0].Node != "node2" || !strings.HasPrefix(workers.Unreachable[0].Why, "nobody listens at 127.") {
		t.Errorf("without the last one: %+v, %v", workers, err)
	}
	testkit.Eventually(t, "the node is dead", func() bool {
		p, err := on.ListNodes(ctx, mobula.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Rows[2].State == "DEAD"
	})
	for what, of := range map[string]func() error{
		"its workers":       func() error { _, err := on.ListWorkers(ctx, mobula.Query{Node: "node2"}); return err },
		"a log of a worker": func() error { _, err := on.Logs(ctx, c.ID(2)+"-1", 0); return err },
		"a task of its jobs": func() error {
			_, err := on.Explain(ctx, fmt.Sprintf("%016x", ids.Home(2).ID(1))+strings.Repeat("0", 24))
			return err
		},
	} {
		testkit.Eventually(t, what+" is of a dead node", func() bool {
			err := of()
			return errors.Is(err, mobula.ErrNotFound) && strings.Contains(err.Error(), "node2") && strings.Contains(err.Error(), "dead")
		})
	}

	c.Kill(0)
	testkit.Eventually(t, "the control plane is away", func() bool {
		s, err := on.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return strings.HasPrefix(s.Control, "away")
	})
	p, err = on.ListNodes(ctx, mobula.Query{})
	if err != nil || len(p.Rows) != 3 || !slices.ContainsFunc(p.Unreachable, func(u mobula.Unreachable) bool { return u.Node == "node0" }) {
		t.Errorf("without the tables: %+v, %v", p, err)
	}
}
