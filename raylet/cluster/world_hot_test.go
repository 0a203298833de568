package cluster

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/raylet/sched"
	"mobula/wire"
)

// fill has a node's store be so full from its next report on, in percent.
func (m *member) fill(percent uint64) { m.store = Store{Limit: 100, Held: percent} }

// stream runs tasks of a class for a while, as many at once, and gives on how many leases of each node some ran in the last round.
func (w *world) stream(o *owner, atOnce int, d time.Duration) map[ids.Home]int {
	k := o.classes[0]
	var on map[ids.Home]int
	for end := w.now + int64(d); w.now < end; {
		o.submit(k, max(atOnce-k.ready, 0))
		for _, m := range w.members() {
			w.gossip(m, true)
		}
		w.settle()
		w.pass(50 * time.Millisecond)
		w.settle()
		on = map[ids.Home]int{}
		for _, id := range o.sorted() {
			switch l := o.leases[id]; {
			case l.busy:
				on[id.Home()]++
				o.finish(id)
			case k.ready == 0:
				o.giveBack(id)
			}
		}
		w.settle()
	}
	return on
}

// An owner that has tasks all the time keeps its leases. Those on a node that turns hot come back while another node has room, within two seconds, and the node is
// not used again as long as that is so; where every node is hot, or only one fits, its tasks run on.
func TestWorkMovesOffANodeThatTurnsHot(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 50) {
		r := rand.New(rand.NewPCG(seed, 21))
		w := newWorld(t, func(n int, _ string) int { return r.IntN(n) })
		for id := range ids.Home(3) {
			w.begin(id+1, amounts(sched.CPU, 4000), "", 0)
		}
		w.settle()
		for _, m := range w.members() {
			w.gossip(m, true)
		}
		w.settle()
		o := w.newOwner(w.nodes[1], 1, &wire.TaskOptions{Func: "one", Spread: r.IntN(2) == 0})
		k := o.classes[0]
		w.stream(o, 3, 2*time.Second)
		w.nodes[1].fill(90)
		w.stream(o, 3, 2*time.Second)
		for range 3 {
			if on := w.stream(o, 3, 300*time.Millisecond); on[1] > 0 || len(on) == 0 {
				w.failf("seed %d: node 1 is hot, tasks run on %v", seed, on)
			}
		}
		for _, m := range w.members() {
			m.fill(90)
		}
		before := k.ran
		if on := w.stream(o, 3, 2*time.Second); len(on) == 0 || k.ran-before < 30 {
			w.failf("seed %d: all nodes are hot: %d tasks ran in two seconds, in the end on %v", seed, k.ran-before, on)
		}
		w.drain()
	}
}

// Leases come back for as many as have room elsewhere, and the others stay: half a lease's worth is none.
func TestLeasesStayOnAHotNodeThatOthersHaveNoRoomFor(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	key := sched.ClassKey{Job: job, Class: 1}
	hotNode := func(version uint64, more ...func(*Node)) Node {
		n := node(4, 6, append(more, held(90))...)
		n.Version = version
		return n
	}
	for _, ev := range []Event{NodeReport{node(self, 0)}, NodeUp{4}, NodeUp{5}, NodeReport{node(4, 10)}, NodeReport{node(5, 0)},
		FromOwner{job, sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "f", Resources: amounts(sched.CPU, 2000)}, Backlog: 2}}} {
		c.Step(1, ev)
	}
	for i := range uint64(2) {
		c.Step(1, FromScheduler{4, job, sched.Granted{Key: key, Lease: ids.LeaseID(ids.Home(4).ID(i + 1)), Worker: 9}})
	}
	asked := func(now time.Duration, ev Event) (back []ids.LeaseID) {
		for _, e := range c.Step(1+int64(now), ev) {
			if m, ok := e.(ToOwner); ok {
				if r, ok := m.Msg.(sched.Reclaim); ok {
					back = append(back, r.Lease)
				}
			}
		}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
		return back
	}
	one, two := ids.LeaseID(ids.Home(4).ID(1)), ids.LeaseID(ids.Home(4).ID(2))
	room := func(version uint64, free int64) Event {
		n := node(5, free)
		n.Version = version
		return NodeReport{n}
	}
	for _, x := range []struct {
		at   time.Duration
		ev   Event
		want []ids.LeaseID
	}{
		{0, NodeReport{hotNode(2)}, nil},
		{time.Millisecond, room(2, 3), nil},
		{2 * time.Millisecond, NodeReport{hotNode(3)}, nil}, // it was looked at just now
		{time.Second, NodeReport{hotNode(4)}, []ids.LeaseID{one}},
		{2 * time.Second, NodeReport{hotNode(5)}, nil}, // the room is for the one that was asked for
		{3 * time.Second, room(3, 4), nil},
		{3 * time.Second, NodeReport{hotNode(6)}, []ids.LeaseID{two}},
		{4 * time.Second, NodeReport{hotNode(7)}, nil},
	} {
		if got := asked(x.at, x.ev); !slices.Equal(got, x.want) {
			t.Errorf("at %v after %+v: asked for are %v, want %v", x.at, x.ev, got, x.want)
		}
	}
}

// An actor, and what is for one node alone, stays where it is.
func TestWhatCannotMoveStaysOnAHotNode(t *testing.T) {
	for name, x := range map[string]struct {
		opts wire.TaskOptions
		kind wire.TaskKind
		back int
	}{
		"a task":                       {back: 1},
		"an actor":                     {kind: wire.TaskActorCreate},
		"a task for that node":         {opts: wire.TaskOptions{Affinity: wire.AffinityHard, Node: 4}},
		"a task rather for that node":  {opts: wire.TaskOptions{Affinity: wire.AffinitySoft, Node: 4}},
		"a task for nodes of its zone": {opts: wire.TaskOptions{Labels: wire.Selector{{Key: "zone", Op: wire.LabelIn, Values: []string{"a"}}}}},
		"a task rather for its zone":   {opts: wire.TaskOptions{PreferLabels: wire.Selector{{Key: "zone", Op: wire.LabelIn, Values: []string{"a"}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t, CoreConfig{})
			job := ids.JobID(self.ID(1))
			key := sched.ClassKey{Job: job, Class: 1}
			full, turned := node(self, 0), node(4, 9, label("zone=a"), held(90))
			turned.Version = 2
			x.opts.Func = "f"
			back := 0
			for _, ev := range []Event{NodeReport{full}, NodeUp{4}, NodeReport{node(4, 10, label("zone=a"))},
				FromOwner{job, sched.Want{Key: key, Opts: &x.opts, Kind: x.kind, Backlog: 1}},
				FromScheduler{4, job, sched.Granted{Key: key, Lease: ids.LeaseID(ids.Home(4).ID(1)), Worker: 9}},
				NodeUp{5}, NodeReport{node(5, 10)}, NodeReport{turned}} {
				for _, e := range c.Step(1, ev) {
					if m, ok := e.(ToOwner); ok {
						_, asked := m.Msg.(sched.Reclaim)
						back += bit(asked)
					}
				}
			}
			if back != x.back {
				t.Errorf("%d leases are asked back, want %d", back, x.back)
			}
		})
	}
}
