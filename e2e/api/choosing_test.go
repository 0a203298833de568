package api

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

var e2eNodeID = mobula.Register0("e2e/node-id", func(ctx context.Context) (string, error) {
	rc, err := mobula.GetRuntimeContext(ctx)
	return rc.NodeID, err
})

// A task or actor runs on a node that is as it asks, and is told what a node lacks that is not.
func TestTasksAndActorsChooseTheirNode(t *testing.T) {
	for name, opts := range map[string][]mobula.StartOption{"goroutines": nil, "processes": {mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			c := mobulatest.Start(t, append(opts, mobula.WithCPUs(2), mobula.WithLabels(map[string]string{"zone": "a", "example.com/rack": "3"}))...)
			ctx := c.Context(t.Context())
			rc, err := mobula.GetRuntimeContext(ctx)
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.Status(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []mobula.NodeOption{mobula.OnNode(rc.NodeID), mobula.PreferNode(rc.NodeID), mobula.PreferNode("77")} {
				get(ctx, t, e2eNodeID.Go(ctx, o), rc.NodeID)
				get(ctx, t, tallyInc.Go(ctx, spawn(ctx, t, 3, o), mobula.V(1)), 4)
			}
			for _, l := range []mobula.Labels{
				{"zone": "in(a, b)"}, {"zone": "a", "example.com/rack": "3"}, {"zone": "!b", "ssd": "!exists()"}, {"mobula.io/os": runtime.GOOS, "mobula.io/node-id": rc.NodeID},
			} {
				get(ctx, t, e2eNodeID.Go(ctx, l, mobula.PreferLabels{"zone": "b"}), rc.NodeID)
				get(ctx, t, tallyInc.Go(ctx, spawn(ctx, t, 3, l), mobula.V(1)), 4)
			}
			for want, refused := range map[string]interface {
				mobula.TaskOption
				mobula.ActorOption
			}{
				"asks for a node where zone in (b), this node has zone=a":        mobula.Labels{"zone": "b"},
				"asks for a node where ssd exists, this node has no label ssd":   mobula.Labels{"zone": "a", "ssd": "exists()"},
				"asks for node 77, this is node " + s.Node:                       mobula.OnNode("77"),
				"asks for a node where mobula.io/arch not in (" + runtime.GOARCH: mobula.Labels{"mobula.io/arch": "!" + runtime.GOARCH},
			} {
				if _, err := e2eNodeID.Go(ctx, refused).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) || !strings.Contains(err.Error(), want) {
					t.Errorf("a task with %v: %v, want ErrUnschedulable with %q", refused, err, want)
				}
				if _, err := tallyInc.Go(ctx, spawn(ctx, t, 0, refused), mobula.V(1)).Get(ctx); !errors.Is(err, mobula.ErrUnschedulable) || !strings.Contains(err.Error(), want) {
					t.Errorf("an actor with %v: %v, want ErrUnschedulable with %q", refused, err, want)
				}
			}
		})
	}
}

// What a task asks of its node, and what labels that has, is shown.
func TestShapesAndLabelsAreShown(t *testing.T) {
	configured(t, "labels: {zone: from-file, rack: 3, example.com/disk: nvme}\n")
	c := mobulatest.Start(t)
	ctx := c.Context(t.Context())
	s, err := c.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"zone": "from-file", "rack": "3", "example.com/disk": "nvme", "mobula.io/arch": runtime.GOARCH, "mobula.io/node-id": "0"} {
		if s.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, s.Labels[key], want)
		}
	}
	ref := e2eNodeID.Go(ctx, mobula.Labels{"rack": "in(3,4)"}, mobula.PreferLabels{"zone": "x"}, mobula.OnNode("0"), mobula.Resources{CPU: .5})
	get(ctx, t, ref, "0")
	page, err := c.ListTasks(ctx, mobula.Query{Filters: []mobula.Filter{{Field: "func", Value: "e2e/node-id"}}})
	if err != nil || len(page.Rows) != 1 {
		t.Fatal(page, err)
	}
	if got, want := page.Rows[0].Shape, "CPU 0.5, on nodes where rack in (3, 4), rather where zone in (x), on node 0"; got != want {
		t.Errorf("its shape is %q, want %q", got, want)
	}
	t.Setenv("MOBULA_LABELS", "zone=b,mobula.io/os=plan9")
	if _, err := mobula.Start(t.Context()); !errors.Is(err, mobula.ErrInvalid) || !strings.Contains(err.Error(), `MOBULA_LABELS: label "mobula.io/os"`) {
		t.Errorf("a label of the node's own: %v", err)
	}
	if _, err := mobula.Start(t.Context(), mobula.WithLabels(map[string]string{"zone": "a b"})); !errors.Is(err, mobula.ErrInvalid) || !strings.Contains(err.Error(), `WithLabels: label "zone"`) {
		t.Errorf("a value with a space: %v", err)
	}
}
