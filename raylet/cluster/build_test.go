package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// node makes a node of 10 CPUs of which so many are free; more says what else it is.
func node(id ids.Home, free int64, more ...func(*Node)) Node {
	n := Node{ID: id, Version: 1, Total: []wire.Resource{{Name: sched.CPU, Amount: 10_000}}, Free: []wire.Resource{{Name: sched.CPU, Amount: free * 1000}},
		Store: Store{Limit: 100}}
	for _, f := range more {
		f(&n)
	}
	return n
}

func draining(n *Node) { n.State = Draining }
func dead(n *Node)     { n.State = Dead }
func short(n *Node)    { n.Short = true }

func gpu(n *Node) {
	n.Total = append(n.Total, wire.Resource{Name: sched.GPU, Amount: 1000})
	n.Free = append(n.Free, wire.Resource{Name: sched.GPU, Amount: 1000})
}

// label is "zone=a".
func label(text string) func(*Node) {
	key, value, _ := strings.Cut(text, "=")
	return func(n *Node) { n.Labels = map[string]string{key: value} }
}

func held(percent uint64) func(*Node) { return func(n *Node) { n.Store.Held = percent } }

func waits(s Shape) func(*Node) {
	return func(n *Node) { n.Backlog = append(n.Backlog, Backlog{s, 3}) }
}

// cpus is a demand of so many CPUs.
func cpus(n int64) Demand {
	return Demand{Shape: Shape{Need: []wire.Resource{{Name: sched.CPU, Amount: n * 1000}}}}
}

func gpus(n int64) Demand {
	d := cpus(1)
	d.Need = append(d.Need, wire.Resource{Name: sched.GPU, Amount: n * 1000})
	return d
}

func (d Demand) with(f func(*Demand)) Demand {
	f(&d)
	return d
}

// best is a configuration that draws nothing: always the best node.
func best() Config {
	cfg := DefaultConfig()
	cfg.TopKFraction = 0
	return cfg
}

type placing struct {
	name  string
	nodes []Node
	d     Demand
	want  string
}

// run runs a table; node 1 decides.
func (c placing) run(t *testing.T) {
	t.Run(c.name, func(t *testing.T) {
		if err := c.d.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := deciding(t, 1, best(), c.nodes).decide(c.d).String(); got != c.want {
			t.Errorf("%v is placed %s, want %s", c.d.Shape, got, c.want)
		}
	})
}

// decider is a core that knows nodes by their reports, and whose owner asks for one lease at a time.
type decider struct {
	t     interface{ Fatal(...any) }
	c     *Core
	now   int64
	class sched.Class
}

// deciding makes a core of a node. What another node has not said the core does not wait for.
func deciding(t interface{ Fatal(...any) }, self ids.Home, cfg Config, nodes []Node) *decider {
	c, err := New(CoreConfig{Config: cfg, Self: self, Random: seeded(7)})
	if err != nil {
		t.Fatal(err)
	}
	d := &decider{t: t, c: c, now: 1}
	for _, n := range nodes {
		if n.ID != self {
			d.step(NodeUp{n.ID})
		}
	}
	for _, n := range nodes {
		d.step(NodeReport{n})
	}
	return d
}

func (d *decider) step(ev Event) []Effect {
	d.now++
	out := slices.Clone(d.c.Step(d.now, ev))
	if err := d.c.validate(); err != nil {
		d.t.Fatal(err)
	}
	return out
}

func (d *decider) key(class sched.Class) sched.ClassKey {
	return sched.ClassKey{Job: ids.JobID(d.c.cfg.Self.ID(1)), Class: class}
}

// decision is where a lease was placed: on a node, or on none that is free, or it was refused.
type decision struct {
	node   ids.Home
	self   bool
	waits  bool
	refuse *errs.Error
}

func (x decision) String() string {
	switch {
	case x.refuse != nil:
		return "infeasible"
	case x.waits:
		return "wait"
	case x.self:
		return fmt.Sprintf("here %v", x.node)
	}
	return fmt.Sprintf("there %v", x.node)
}

// decide has the owner want one lease more, of a new class.
func (d *decider) decide(x Demand) decision {
	got, _ := d.ask(x)
	return got
}

// again is decide, and the owner wants it no more then.
func (d *decider) again(x Demand) decision {
	got, key := d.ask(x)
	d.step(FromOwner{key.Job, sched.Want{Key: key}})
	return got
}

func (d *decider) ask(x Demand) (decision, sched.ClassKey) {
	d.class++
	key := d.key(d.class)
	if x.Args != nil {
		d.step(Locality{Key: key, Args: x.Args})
	}
	j := d.c.job(key.Job)
	cl := d.c.newClass(j, key, &wire.TaskOptions{Func: "f"}, wire.TaskNormal)
	cl.shape = x.Shape
	out := d.step(FromOwner{j.id, sched.Want{Key: key, Backlog: 1}})
	if x.Strategy.Kind == Affinity && !x.Strategy.Soft {
		d.now += int64(2 * firstReport) // a node that is not known is waited for
		out = append(out, d.step(Timer{})...)
	}
	for _, e := range out {
		if o, ok := e.(ToOwner); ok {
			if no, ok := o.Msg.(sched.Infeasible); ok {
				return decision{refuse: no.Err}, key
			}
		}
	}
	for _, s := range cl.shares {
		if s.placed == 1 && told(out)[s.node] == 1 {
			return decision{node: s.node, self: s.node == d.c.cfg.Self}, key
		}
	}
	if cl.rest() != 1 {
		d.t.Fatal("it is neither placed nor waits")
	}
	return decision{waits: true}, key
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 1)) }

// drawn is how often each node is chosen.
func drawn(d *decider, x Demand, times int) map[ids.Home]int {
	out := make(map[ids.Home]int)
	for range times {
		out[d.again(x).node]++
	}
	return out
}

func keys(m map[ids.Home]int) []ids.Home {
	var out []ids.Home
	for id := range m {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}
