package cluster

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// told gives the last number that each node's scheduler was told of any class.
func told(es []Effect) map[ids.Home]int {
	out := make(map[ids.Home]int)
	for _, e := range es {
		if s, ok := e.(ToScheduler); ok {
			if w, ok := s.Event.(sched.Want); ok {
				out[s.Node] = w.Backlog
			}
		}
	}
	return out
}

// What prefers a node waits there while that is busy, though this node is free; what no options say yet is set in the class.
func TestAnAffineClassWaitsAtItsNode(t *testing.T) {
	for _, soft := range []bool{false, true} {
		c := newCore(t, CoreConfig{})
		c.Step(1, NodeReport{node(self, 10)})
		c.Step(1, NodeUp{4})
		c.Step(1, NodeReport{node(4, 0)})
		j := c.job(ids.JobID(self.ID(1)))
		cl := c.newClass(j, sched.ClassKey{Job: j.id, Class: 1}, &wire.TaskOptions{Func: "f"}, wire.TaskNormal)
		cl.shape.Strategy = Strategy{Kind: Affinity, Node: 4, Soft: soft}
		es := c.Step(2, FromOwner{j.id, sched.Want{Key: cl.key, Backlog: 3}})
		if got := told(es); len(got) != 1 || got[4] != 3 {
			t.Errorf("soft %v: told %v", soft, got)
		}
		es = c.Step(3, NodeReport{Node{ID: 4, Version: 2, State: Draining, Total: node(4, 0).Total, Free: node(4, 0).Free}})
		if got := told(es); got[4] != 0 || got[self] != 3*bit(soft) {
			t.Errorf("soft %v: its node drains, and told are %v", soft, got)
		}
	}
}

// A node that has granted what was placed on it is told so, and what it grants beyond goes back: for tasks that are to be spread it would take the place of a
// lease of a node that is slow.
func TestALeaseOutOfTurnGoesBack(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	key := sched.ClassKey{Job: job, Class: 1}
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}} {
		c.Step(1, ev)
	}
	granted := func(at ids.Home, n uint64) Event {
		return FromScheduler{at, job, sched.Granted{Key: key, Lease: ids.LeaseID(at.ID(n))}}
	}
	want := FromOwner{job, sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "f", Spread: true}, Backlog: 2}}
	if got := told(c.Step(2, want)); got[self] != 1 || got[4] != 1 {
		t.Fatalf("told %v", got)
	}
	for i, s := range []struct {
		ev    Event
		want  map[ids.Home]int
		heard bool
	}{
		{granted(self, 1), map[ids.Home]int{self: 0}, true},
		{granted(self, 2), map[ids.Home]int{}, false}, // it crossed with that
		{granted(4, 1), map[ids.Home]int{}, true},     // the owner is about to say whether there is more
	} {
		es := c.Step(int64(3+i), s.ev)
		heard, back := settled(es)
		if heard != s.heard || back == s.heard || !maps.Equal(told(es), s.want) {
			t.Errorf("at %v: its owner hears of it: %v, it goes back: %v, told are %v", s.ev, heard, back, told(es))
		}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
	}
}

// settled tells what becomes of a lease that was granted: whether its owner hears of it, and whether it goes back.
func settled(es []Effect) (heard, back bool) {
	for _, e := range es {
		switch e := e.(type) {
		case ToOwner:
			heard = true
		case ToScheduler:
			_, returns := e.Event.(sched.Return)
			back = back || returns
		}
	}
	return heard, back
}

// Errors call a node what lists call it.
func TestErrorsNameNodes(t *testing.T) {
	c := newCore(t, CoreConfig{NameOf: func(h ids.Home) string { return "n" + h.String() }})
	job := ids.JobID(self.ID(1))
	want := func(class sched.Class, cpus int64) Event {
		opts := &wire.TaskOptions{Func: "f", Affinity: wire.AffinityHard, Node: 4, Resources: []wire.Resource{{Name: sched.CPU, Amount: cpus * sched.OneCPU}}}
		return FromOwner{job, sched.Want{Key: sched.ClassKey{Job: job, Class: class}, Opts: opts, Backlog: 1}}
	}
	var said []string
	for _, ev := range []Event{
		NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}, want(1, 100), want(2, 1),
		FromScheduler{4, job, sched.Granted{Key: sched.ClassKey{Job: job, Class: 2}, Lease: ids.LeaseID(ids.Home(4).ID(1))}}, NodeGone{4},
	} {
		for _, e := range c.Step(1, ev) {
			if to, is := e.(ToOwner); is {
				switch m := to.Msg.(type) {
				case sched.Infeasible:
					said = append(said, m.Err.Error())
				case sched.Revoked:
					said = append(said, m.Err.Error())
				}
			}
		}
	}
	if len(said) != 2 || !strings.Contains(said[0], "on node n4: no node can run it") || !strings.Contains(said[1], "its node n4 is gone") {
		t.Errorf("it says %q", said)
	}
}

// After a restart of its owner one out of turn does not go back either.
func TestARestartedOwnerDecidesOnALeaseOutOfTurn(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	key := sched.ClassKey{Job: job, Class: 1}
	want := FromOwner{job, sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "f", Spread: true}, Backlog: 2}}
	granted := func(n uint64) Event {
		return FromScheduler{self, job, sched.Granted{Key: key, Lease: ids.LeaseID(self.ID(n))}}
	}
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}, FromOwner{job, sched.OwnerRestarted{Job: job, Epoch: 7}}, want, granted(1)} {
		c.Step(1, ev)
	}
	if heard, back := settled(c.Step(2, granted(2))); !heard || back {
		t.Errorf("its owner hears of it: %v; it goes back, though its scheduler may be repeating it: %v", heard, back)
	}
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
}

// A lease that comes unwanted goes back. After a restart of its owner that decides: the scheduler repeats the lease before it hears that it has gone back, and a
// core after this one knows nothing of that.
func TestARestartedOwnerDecidesOnALease(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		c := newCore(t, CoreConfig{})
		job := ids.JobID(self.ID(1))
		key := sched.ClassKey{Job: job, Class: 1}
		for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}, Holds{Job: job, Node: 4, Objects: true}} {
			c.Step(1, ev)
		}
		if restarted {
			c.Step(2, FromOwner{job, sched.OwnerRestarted{Job: job, Epoch: 7}})
		}
		heard, back := settled(c.Step(3, FromScheduler{4, job, sched.Granted{Key: key, Lease: ids.LeaseID(ids.Home(4).ID(1))}}))
		if heard != restarted || back == restarted {
			t.Errorf("restarted: %v; its owner hears of the lease: %v, it goes back: %v", restarted, heard, back)
		}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
	}
}

// Where fewer tasks are to be spread than before, those that are left are on every node.
func TestFewerTasksAreSpreadToo(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeUp{5}, NodeReport{node(4, 10)}, NodeReport{node(5, 10)}} {
		c.Step(1, ev)
	}
	w := sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f", Spread: true}}
	for i, each := range []int{4, 1} {
		w.Backlog = 3 * each
		if got := told(c.Step(int64(2+i), FromOwner{job, w})); got[self] != each || got[4] != each || got[5] != each {
			t.Errorf("of %d tasks the nodes are told %v", w.Backlog, got)
		}
		if err := c.validate(); err != nil {
			t.Fatal(err)
		}
	}
}

// A Want crosses with a lease of which its owner has not heard: that one is for what it wants. A lease of which it has heard is not.
func TestALeaseThatCrossesWithAWantIsNotGrantedTwice(t *testing.T) {
	job, lease := ids.JobID(self.ID(1)), ids.LeaseID(ids.Home(4).ID(1))
	w := sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f", Spread: true}, Backlog: 1}
	granted := FromScheduler{4, job, sched.Granted{Key: w.Key, Lease: lease}}
	for more, events := range map[int][]Event{
		1: {granted},
		2: {granted, Heard{job, lease}},
		3: {granted, FromScheduler{4, job, sched.Revoked{Lease: lease}}},
	} {
		c := newCore(t, CoreConfig{})
		for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}, FromOwner{job, w}} {
			c.Step(1, ev)
		}
		for _, ev := range events {
			c.Step(2, ev)
		}
		next := w
		next.Backlog = max(more, 2)
		sum := 0
		for _, n := range told(c.Step(3, FromOwner{job, next})) {
			sum += n
		}
		if sum != more {
			t.Errorf("after %v %d leases are asked for, want %d", events, sum, more)
		}
		if err := c.validate(); err != nil {
			t.Error(err)
		}
	}
}

// refusals are what an owner is told that cannot be run.
func refusals(es []Effect) (n int) {
	for _, e := range es {
		if o, ok := e.(ToOwner); ok {
			if _, no := o.Msg.(sched.Infeasible); no {
				n++
			}
		}
	}
	return n
}

// A node that is asked for by its id and was never heard of may have joined just now, whether this one is alone yet or not: it is waited for. One that is gone,
// or that does not come, is named at once, or when its time is over.
func TestANodeThatWasNeverHeardOfIsWaitedFor(t *testing.T) {
	const late = int64(firstReport + 2*DefaultPatience)
	job := ids.JobID(self.ID(1))
	want := sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f", Affinity: wire.AffinityHard, Node: 4}, Backlog: 1}
	soft := want
	soft.Opts = &wire.TaskOptions{Func: "f", Affinity: wire.AffinitySoft, Node: 4}
	cannot := FromScheduler{self, job, sched.Infeasible{Key: want.Key, Err: errs.New(errs.CodeUnschedulable, "it is another node")}}
	up, report := NodeUp{4}, NodeReport{node(4, 10)}
	for name, c := range map[string]struct {
		before []Event
		events []Event
		comes  bool
		told   int // of refusals, when late
	}{
		"alone, and it comes":        {nil, []Event{FromOwner{job, want}, cannot, up, report}, true, 0},
		"alone, and it does not":     {nil, []Event{FromOwner{job, want}, cannot}, false, 1},
		"not alone, and it comes":    {[]Event{NodeUp{2}, NodeReport{node(2, 10)}}, []Event{FromOwner{job, want}, up, report}, true, 0},
		"not alone, and it does not": {[]Event{NodeUp{2}, NodeReport{node(2, 10)}}, []Event{FromOwner{job, want}}, false, 1},
	} {
		k := newCore(t, CoreConfig{})
		k.Step(1, NodeReport{node(self, 10)})
		for _, ev := range c.before {
			k.Step(1, ev)
		}
		asked := false
		for _, ev := range c.events {
			es := k.Step(2, ev)
			if n := refusals(es); n > 0 {
				t.Errorf("%s: %d refusals at %T", name, n, ev)
			}
			asked = asked || told(es)[4] == 1
		}
		if asked != c.comes {
			t.Errorf("%s: it is asked: %v", name, asked)
		}
		if n := refusals(k.Step(late, Timer{})); n != c.told {
			t.Errorf("%s: %d refusals in the end, want %d", name, n, c.told)
		}
	}

	k := newCore(t, CoreConfig{})
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{2}, NodeReport{node(2, 10)}, up, report, NodeGone{4}} {
		k.Step(1, ev)
	}
	if n := refusals(k.Step(2, FromOwner{job, want})); n != 1 {
		t.Errorf("of a node that is gone: %d refusals", n)
	}
	k = newCore(t, CoreConfig{})
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{2}, NodeReport{node(2, 10)}} {
		k.Step(1, ev)
	}
	if es := k.Step(2, FromOwner{job, soft}); told(es)[self] != 1 {
		t.Errorf("what merely prefers it waits: %v", es)
	}
}

// What a scheduler repeats to an owner that was restarted comes late at times: the lease was given back since, or the owner was restarted once more. Then nobody
// holds it, and the core counts it no longer.
func TestALeaseThatIsRepeatedLateIsNotHeld(t *testing.T) {
	job, lease := ids.JobID(self.ID(1)), ids.LeaseID(self.ID(7))
	key := sched.ClassKey{Job: job, Class: 1}
	restarted := func(epoch uint64) Event { return FromOwner{job, sched.OwnerRestarted{Job: job, Epoch: epoch}} }
	granted := func(epoch uint64) Event {
		return FromScheduler{self, job, sched.Granted{Key: key, Lease: lease, Epoch: epoch}}
	}
	returned := FromOwner{job, sched.Return{Lease: lease}}
	for name, events := range map[string][]Event{
		"it crossed with the restart, and was given back": {restarted(8), granted(0), returned, granted(8)},
		"the owner was restarted once more":               {restarted(8), granted(0), returned, restarted(9), granted(8)},
		"so it was, after that":                           {Restored{Jobs: []ids.JobID{job}, Epoch: 7}, granted(8), restarted(9)},
	} {
		c := newCore(t, CoreConfig{})
		for i, ev := range events {
			c.Step(int64(i+1), ev)
			if err := c.validate(); err != nil {
				t.Fatalf("%s, event %d: %v", name, i, err)
			}
		}
		if len(c.leases) != 0 {
			t.Errorf("%s: it is counted as held", name)
		}
	}
}

// BenchmarkWant is all of a job's wants going out to 10,000 nodes, and back.
func BenchmarkWant(b *testing.B) {
	const nodes, slots = 10_000, 4
	c := newCore(b, CoreConfig{})
	c.cfg.Config = DefaultConfig()
	for i := range ids.Home(nodes) {
		c.Step(1, NodeUp{i})
		c.Step(1, NodeReport{Node{ID: i, Version: 1, Total: amounts(sched.CPU, 1000*slots), Free: amounts(sched.CPU, 1000*slots)}})
	}
	job := ids.JobID(self.ID(1))
	w := sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f"}}
	b.ReportAllocs()
	for b.Loop() {
		w.Backlog = nodes * slots
		c.Step(2, FromOwner{job, w})
		w.Backlog = 0
		c.Step(2, FromOwner{job, w})
	}
	b.ReportMetric(float64(b.N*nodes*slots)/b.Elapsed().Seconds(), "placed/s")
}

// BenchmarkReport is a report while tasks wait that no node has room for.
func BenchmarkReport(b *testing.B) {
	const nodes = 10_000
	c := newCore(b, CoreConfig{})
	busy := func(i ids.Home, version uint64) Node {
		return Node{ID: i, Version: version, Total: amounts(sched.CPU, 4000), Free: amounts(sched.CPU, 0)}
	}
	for i := range ids.Home(nodes) {
		c.Step(1, NodeUp{i})
		c.Step(1, NodeReport{busy(i, 1)})
	}
	job := ids.JobID(self.ID(1))
	c.Step(2, FromOwner{job, sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f"}, Backlog: 1_000_000}})
	version := uint64(1)
	b.ReportAllocs()
	for b.Loop() {
		version++
		c.Step(3, NodeReport{busy(ids.Home(version%nodes), version)})
	}
}

// A scheduler asks an owner what it holds and is gone before the answer. What the owner wants it has said in that answer: it goes to this node's scheduler, which
// has not asked, and is alone now.
func TestTheWantsOfAnAnswerOutliveWhoAsked(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	w := sched.Want{Key: sched.ClassKey{Job: job, Class: 1}, Opts: &wire.TaskOptions{Func: "f"}, Backlog: 2}
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeReport{node(4, 10)}, Holds{Job: job, Node: 4, Objects: true},
		FromScheduler{4, job, sched.Resync{Epoch: 7}}, NodeGone{Node: 4}} {
		c.Step(1, ev)
	}
	wanted := 0
	for _, e := range c.Step(2, FromOwner{job, sched.Holdings{Job: job, Epoch: 7, Wants: []sched.Want{w}}}) {
		if e, ok := e.(ToScheduler); ok && e.Node == self && reflect.DeepEqual(e.Event, sched.Event(w)) {
			wanted++
		}
	}
	if wanted != 1 {
		t.Errorf("the scheduler is told %d times what is wanted", wanted)
	}
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
}

// An owner hears which of the nodes with many bytes of what waits cannot run it, and not of those that can, or are not known.
func TestAnOwnerHearsWhichNodesCannotRunAClass(t *testing.T) {
	c := newCore(t, CoreConfig{})
	job := ids.JobID(self.ID(1))
	gpu := node(5, 10)
	gpu.Total = append(gpu.Total, wire.Resource{Name: "gpu", Amount: 1000})
	gpu.Free = append(gpu.Free, wire.Resource{Name: "gpu", Amount: 1000})
	for _, ev := range []Event{NodeReport{node(self, 10)}, NodeUp{4}, NodeUp{5}, NodeUp{6}, NodeReport{node(4, 10)}, NodeReport{gpu}} {
		c.Step(1, ev)
	}
	key := sched.ClassKey{Job: job, Class: 1}
	c.Step(2, Locality{Key: key, Args: []Held{{Node: 4, Bytes: 1 << 30}, {Node: 5, Bytes: 1 << 29}, {Node: 6, Bytes: 1 << 28}, {Node: self, Bytes: 8}}})
	var unable [][]ids.Home
	for _, e := range c.Step(3, FromOwner{job, sched.Want{Key: key, Opts: &wire.TaskOptions{Func: "f", Resources: []wire.Resource{{Name: "gpu", Amount: 1000}}}, Backlog: 1}}) {
		if e, ok := e.(ToOwner); ok {
			if m, ok := e.Msg.(sched.Unable); ok && m.Key == key {
				unable = append(unable, m.Nodes)
			}
		}
	}
	if len(unable) != 1 || !slices.Equal(unable[0], []ids.Home{4}) {
		t.Errorf("told are %v", unable)
	}
}
