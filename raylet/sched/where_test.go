package sched

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// labelled is a node of home 3, with labels.
func labelled(t *testing.T) *Core {
	t.Helper()
	c, _, err := New(Config{Name: "n3", Resources: res(CPU, 2000), Labels: map[string]string{"zone": "a", "mobula.io/os": "linux"}, FirstLease: ids.LeaseID(ids.Home(3).ID(0))})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asks wants a lease, and gives what the scheduler says: nothing if it asks for a worker.
func asks(t *testing.T, c *Core, opts wire.TaskOptions) *errs.Error {
	t.Helper()
	opts.Func = "f"
	for _, e := range c.Step(1, Want{Key: key(1, 1), Opts: &opts, Backlog: 1}) {
		switch e := e.(type) {
		case NeedWorker:
			return nil
		case ToOwner:
			return e.Msg.(Infeasible).Err
		}
	}
	t.Fatalf("%+v: neither granted nor refused", opts)
	return nil
}

func TestANodeRunsWhatItIsAskedFor(t *testing.T) {
	zone := func(op wire.LabelOp, values ...string) []wire.LabelMatch {
		return []wire.LabelMatch{{Key: "zone", Op: op, Values: values}}
	}
	ssd := []wire.LabelMatch{{Key: "ssd", Op: wire.LabelExists}}
	big := res(CPU, 9000)
	for _, c := range []struct {
		name string
		opts wire.TaskOptions
		want string // empty: it runs
	}{
		{"its label", wire.TaskOptions{Labels: zone(wire.LabelIn, "b", "a")}, ""},
		{"a label that every node has", wire.TaskOptions{Labels: []wire.LabelMatch{{Key: "mobula.io/os", Values: []string{"linux"}}}}, ""},
		{"another value", wire.TaskOptions{Labels: zone(wire.LabelIn, "b")}, "f asks for a node where zone in (b), this node has zone=a; ask for other labels or start"},
		{"not its value", wire.TaskOptions{Labels: zone(wire.LabelNotIn, "a")}, "f asks for a node where zone not in (a), this node has zone=a"},
		{"a label that it has not", wire.TaskOptions{Labels: append(zone(wire.LabelExists), ssd...)}, "f asks for a node where ssd exists, this node has no label ssd"},
		{"itself", wire.TaskOptions{Affinity: wire.AffinityHard, Node: 3}, ""},
		{"another node", wire.TaskOptions{Affinity: wire.AffinityHard, Node: 0}, "f asks for node 0, this is node n3"},
		{"rather another node", wire.TaskOptions{Affinity: wire.AffinitySoft, Node: 0}, ""},
		{"rather another label", wire.TaskOptions{PreferLabels: ssd}, ""},
		{"the label, and more than there is", wire.TaskOptions{Labels: zone(wire.LabelIn, "a"), Resources: big}, "f asks 9 CPU, this node has 2"},
		{"another label, and more than there is", wire.TaskOptions{Labels: ssd, Resources: big}, "no label ssd"},
	} {
		t.Run(c.name, func(t *testing.T) {
			core := labelled(t)
			err := asks(t, core, c.opts)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.want != "" && (!errors.Is(err, errs.ErrUnschedulable) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want ErrUnschedulable with %q", err, c.want)
			case c.want != "" && core.Explain(key(1, 1)).Text != err.Error():
				t.Errorf("it is explained as %q", core.Explain(key(1, 1)).Text)
			}
		})
	}
}

// Options that a program's own checks would not have let through are refused before a node is looked for.
func TestOptionsThatNoNodeCanBeMeantFor(t *testing.T) {
	for want, opts := range map[string]wire.TaskOptions{
		"to spread, and to run on node 3":    {Spread: true, Affinity: wire.AffinityHard, Node: 3},
		`label selector "zone in ()"`:        {Labels: []wire.LabelMatch{{Key: "zone"}}},
		`label selector " exists": label ""`: {PreferLabels: []wire.LabelMatch{{Op: wire.LabelExists}}},
	} {
		err := asks(t, labelled(t), opts)
		if !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want ErrInvalid with %q", opts, err, want)
		}
	}
}

// More resources change nothing for a class that must run elsewhere.
func TestWhereIsNoMatterOfResources(t *testing.T) {
	c := labelled(t)
	if err := asks(t, c, wire.TaskOptions{Affinity: wire.AffinityHard, Node: 9}); err == nil {
		t.Fatal("it runs")
	}
	if out := c.Step(2, SetResources{Total: res(CPU, 64000)}); len(out) > 0 {
		t.Errorf("%v", out)
	}
}
