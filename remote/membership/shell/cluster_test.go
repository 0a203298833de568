package shell

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote/membership"
	"mobula/remote/membership/memnet"
)

// settled is by when the gossip has reached everybody. In a small cluster it sends a message four times, so that now and then a node hears of another only with an
// exchange of all state, which are 30 s apart.
const settled = 3 * time.Minute

// cluster starts nodes 1 to n in a network in this process, in a bubble, and has them join the first.
func cluster(t *testing.T, net *memnet.Network, n int, set ...func(*Config)) []*testNode {
	t.Helper()
	t.Cleanup(func() { time.Sleep(time.Minute) }) // of the bubble, last: what memberlist has begun ends by time-outs
	nodes := make([]*testNode, n)
	for i := range nodes {
		nodes[i] = start(t, life(ids.Home(i+1), 1), append([]func(*Config){on(t, net, at(i))}, set...)...)
		if i > 0 {
			nodes[i].join(testkit.Within(t), nodes[0])
		}
	}
	return nodes
}

// others are the homes of nodes 1 to n but one.
func others(n int, not ...ids.Home) (out []ids.Home) {
	for h := ids.Home(1); h <= ids.Home(n); h++ {
		if !slices.Contains(not, h) {
			out = append(out, h)
		}
	}
	return out
}

// In the time of the bubble 32 nodes with memberlist's timing for a data centre agree within 10 s of the start, and of the kill of three: by the gossip, or, where
// that takes longer, by the verdict that it has hurried.
func TestManyNodesAgree(t *testing.T) {
	const size = 32
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		net.Shape(memnet.Shape{Latency: time.Millisecond, Jitter: 4 * time.Millisecond, Loss: 0.01})
		table := newTable(life(1, 1))
		nodes := cluster(t, net, size, func(c *Config) { c.Accuse = table.accuses(c.Core.Self.Home) })
		defer table.close()
		agree(t, 10*time.Second, table, nodes, 2, 3, 5)
	})
}

// agree waits until all nodes know of each other, kills some, and waits until the others know that: for so long each.
func agree(t *testing.T, bound time.Duration, table *table, nodes []*testNode, kill ...int) {
	t.Helper()
	began := time.Now()
	ctx := within(t, bound)
	for _, n := range nodes {
		table.join(n)
	}
	for _, n := range nodes {
		n.sees(ctx, others(len(nodes), n.self.Home)...)
	}
	t.Logf("%d nodes agree %v after the start", len(nodes), time.Since(began))
	var gone []ids.Home
	for _, i := range kill {
		nodes[i].kill()
		gone = append(gone, nodes[i].self.Home)
	}
	began = time.Now()
	ctx = within(t, bound)
	for _, n := range nodes {
		if !slices.Contains(gone, n.self.Home) {
			n.sees(ctx, others(len(nodes), append([]ids.Home{n.self.Home}, gone...)...)...)
		}
	}
	t.Logf("%d nodes agree %v after the kill of %d", len(nodes), time.Since(began), len(kill))
	nodes[0].until(within(t, bound), "wants the verdicts", func() bool { return len(told[membership.NodeFenced](nodes[0])) == len(kill) })
	if got := table.verdicts(); !slices.Equal(got, gone) {
		t.Errorf("the lives of %v are over, %v were killed", got, gone)
	}
	for _, n := range nodes {
		for _, f := range told[membership.NodeDead](n) {
			if !slices.Contains(gone, f.Life.Home) && !slices.Contains(gone, n.self.Home) {
				t.Errorf("node %v took node %v for dead: %v", n.self.Home, f.Life, f.Why)
			}
		}
	}
}

// Two halves that do not hear each other believe each other dead, and are together again some time after the cut has healed. Nobody is declared dead meanwhile.
func TestTheHalvesOfACutMeetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, 6)
		for _, n := range nodes {
			n.sees(within(t, settled), others(6, n.self.Home)...)
		}
		here, there := []string{at(0), at(1), at(2)}, []string{at(3), at(4), at(5)}
		net.Partition(here, there, true)
		for i, n := range nodes {
			if i < 3 {
				n.sees(within(t, settled), others(3, n.self.Home)...)
			} else {
				n.sees(within(t, settled), others(6, n.self.Home, 1, 2, 3)...)
			}
			n.mu.Lock()
			if len(n.accused) == 0 {
				t.Errorf("node %v has asked the control plane about nobody", n.self)
			}
			n.mu.Unlock()
		}
		net.Partition(here, there, false)
		for _, n := range nodes {
			n.sees(within(t, settled), others(6, n.self.Home)...)
			if fenced := told[membership.NodeFenced](n); fenced != nil {
				t.Errorf("node %v was told that %v are over", n.self, fenced)
			}
		}
	})
}

// A node that stands still for 2 s is not given up.
func TestANodeThatStandsStillIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, 4)
		for _, n := range nodes {
			n.sees(within(t, settled), others(4, n.self.Home)...)
		}
		for range 5 {
			net.Stop(at(2), true)
			time.Sleep(2 * time.Second) // of the bubble
			net.Stop(at(2), false)
			time.Sleep(10 * time.Second)
		}
		for _, n := range nodes {
			if dead := told[membership.NodeDead](n); dead != nil {
				t.Errorf("node %v was told of the deaths %+v", n.self, dead)
			}
		}
	})
}

// A node is not given up whose refutation the gossip has lost.
func TestARefutationThatIsLostReachesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		var once sync.Once
		lost := sawLine("Refuting a suspect message", func() {
			once.Do(func() {
				net.Shape(memnet.Shape{Loss: 1})
				time.AfterFunc(900*time.Millisecond, func() { net.Shape(memnet.Shape{}) })
			})
		})
		nodes := cluster(t, net, 4, func(c *Config) {
			c.Timing = LAN()
			c.Timing.PushPull = time.Hour // which would heal it, if it came in time
			c.Logger = slog.New(lost)
		})
		for _, n := range nodes {
			n.sees(within(t, settled), others(4, n.self.Home)...)
		}
		net.Stop(at(2), true)
		time.Sleep(2 * time.Second) // of the bubble
		net.Stop(at(2), false)
		time.Sleep(time.Minute)
		for _, n := range nodes {
			if dead := told[membership.NodeDead](n); dead != nil {
				t.Errorf("node %v was told of the deaths %+v", n.self, dead)
			}
		}
	})
}

func TestANodeThatLeavesIsNotDoubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, 5)
		for _, n := range nodes {
			n.sees(within(t, settled), others(5, n.self.Home)...)
		}
		if err := nodes[1].Leave(within(t, 5*time.Second)); err != nil {
			t.Fatal(err)
		}
		nodes[1].kill()
		for i, n := range nodes {
			if i == 1 {
				continue
			}
			n.until(within(t, 5*time.Second), "wants node 2 gone", func() bool { return len(told[membership.NodeLeft](n)) > 0 })
			time.Sleep(time.Minute)
			n.mu.Lock()
			if len(n.accused) > 0 {
				t.Errorf("node %v has accused %+v", n.self, n.accused)
			}
			n.mu.Unlock()
		}
		again := start(t, life(2, 2), on(t, net, at(1)))
		again.join(within(t, 10*time.Second), nodes[0])
		for _, n := range nodes {
			if n != nodes[1] {
				n.sees(within(t, settled), others(5, n.self.Home)...)
			}
		}
	})
}

// After a panic of the core the next one knows what memberlist and the loads say.
func TestAPanicLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fenced bool
		nodes := cluster(t, memnet.New(1), 3, func(c *Config) {
			if c.Core.Self.Home == 1 {
				c.Facts = func() []membership.Event {
					if fenced {
						return []membership.Event{membership.Fenced{Life: life(9, 4)}}
					}
					return nil
				}
			}
		})
		n := nodes[0]
		n.sees(within(t, settled), 2, 3)
		if err := nodes[1].SetLoad(membership.Report{Version: 1, Bytes: []byte("busy")}); err != nil {
			t.Fatal(err)
		}
		n.until(within(t, 10*time.Second), "wants a load", func() bool { return len(told[membership.LoadReceived](n)) == 1 })
		fenced = true
		n.sys.Faults.Inject(actors.Fault{Kind: "membership", MessageType: "membership.Beat", Nth: 1, Action: actors.PanicMidStep})
		if err := n.Tell(membership.Beat{Node: membership.Node{Life: life(3, 1)}, Number: 1}); err != nil {
			t.Fatal(err)
		}
		n.until(within(t, 10*time.Second), "wants all of it again", func() bool {
			return len(told[membership.NodeUp](n)) == 4 && len(told[membership.LoadReceived](n)) == 2 && len(told[membership.NodeFenced](n)) == 1
		})
		n.sees(within(t, time.Second), 2, 3)
		if got := n.sys.Restarts()["membership"]; got != 1 {
			t.Errorf("%d restarts", got)
		}
	})
}

// A life that is over is not let in again, whatever it says; the next one is.
func TestALifeThatIsOverIsNotLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, 3)
		for _, n := range nodes[:2] {
			n.sees(within(t, settled), others(3, n.self.Home)...)
			if err := n.Tell(membership.Fenced{Life: life(3, 1)}); err != nil {
				t.Fatal(err)
			}
			n.until(within(t, time.Second), "wants the verdict", func() bool { return len(told[membership.NodeFenced](n)) == 1 })
			n.sees(within(t, time.Second), others(2, n.self.Home)...)
		}
		before := len(told[membership.NodeUp](nodes[0]))
		for range 3 {
			_, _ = nodes[2].Join(within(t, 10*time.Second), []string{nodes[0].Address()})
			time.Sleep(10 * time.Second)
		}
		if ups := told[membership.NodeUp](nodes[0]); len(ups) != before {
			t.Errorf("told of %+v", ups[before:])
		}
		nodes[2].kill()
		start(t, life(3, 2), on(t, net, at(2))).join(within(t, 10*time.Second), nodes[0])
		for _, n := range nodes[:2] {
			n.sees(within(t, settled), others(3, n.self.Home)...)
		}
	})
}

// Two nodes with one life, each at its own address, are noticed, and both addresses told.
func TestTwoNodesWithOneHomeAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, 3)
		copied := start(t, life(2, 1), on(t, net, at(7)))
		_, _ = copied.Join(within(t, 10*time.Second), []string{nodes[0].Address()})
		n := nodes[0]
		n.until(within(t, 30*time.Second), "wants a clash", func() bool { return len(told[membership.HomeClash](n)) > 0 })
		if c := told[membership.HomeClash](n)[0]; c != (membership.HomeClash{Home: 2, Addresses: [2]string{at(1), at(7)}}) {
			t.Errorf("told %+v", c)
		}
	})
}

// However often nodes report, what a node sends of loads stays within the budget, and every node has every other one's latest load in the end, one that comes later
// too.
func TestLoadsReachAllWithinTheBudget(t *testing.T) {
	const size = 12
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(1)
		nodes := cluster(t, net, size)
		for _, n := range nodes {
			n.sees(within(t, settled), others(size, n.self.Home)...)
		}
		idle := sent(nodes, time.Minute, func() {})
		version := uint64(0)
		busy := sent(nodes, time.Minute, func() {
			version++
			for _, n := range nodes {
				if err := n.SetLoad(membership.Report{Version: version, Bytes: fmt.Appendf(nil, "%150d", version)}); err != nil {
					t.Fatal(err)
				}
			}
		})
		budget := float64(nodes[0].cfg.Core.Loads.Budget)
		t.Logf("bytes a second of a node: idle %.0f, with loads %.0f, budget for loads %.0f", idle, busy, budget)
		if busy-idle > 1.2*budget { // a packet with a load has a head
			t.Errorf("loads cost %.0f bytes a second, the budget is %.0f", busy-idle, budget)
		}
		late := start(t, life(size+1, 1), on(t, net, at(size)))
		late.join(within(t, 10*time.Second), nodes[3])
		for _, n := range append(slices.Clone(nodes), late) {
			n.until(within(t, 2*time.Minute), "wants the last load of all", func() bool {
				has := make(map[ids.Home]bool)
				for _, f := range told[membership.LoadReceived](n) {
					if f.Load.Version == version {
						has[f.Load.Life.Home] = true
					}
				}
				return len(has) >= size-1
			})
		}
	})
}

// sent lets time pass, with f ten times a second, and gives how many bytes a second a node has sent at most.
func sent(nodes []*testNode, d time.Duration, f func()) (most float64) {
	before := make([]uint64, len(nodes))
	for i, n := range nodes {
		before[i] = n.Stats().Bytes
	}
	for range d / (100 * time.Millisecond) {
		f()
		time.Sleep(100 * time.Millisecond) // of the bubble
	}
	for i, n := range nodes {
		most = max(most, float64(n.Stats().Bytes-before[i])/d.Seconds())
	}
	return most
}
