package cluster

import (
	"maps"
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

func TestHybrid(t *testing.T) {
	memory := func(free int64) func(*Node) {
		return func(n *Node) {
			n.Total = append(n.Total, wire.Resource{Name: sched.Memory, Amount: 100})
			n.Free = append(n.Free, wire.Resource{Name: sched.Memory, Amount: free})
		}
	}
	for _, c := range []placing{
		{"work stays below half", []Node{node(1, 6), node(2, 10)}, cpus(1), "here 1"},
		{"from half on the emptier node is better", []Node{node(1, 5), node(2, 10)}, cpus(1), "there 2"},
		{"below half nodes are as good as idle, and the first of them comes first", []Node{node(1, 0), node(2, 6), node(3, 10)}, cpus(1), "there 2"},
		{"above it the least utilised is best", []Node{node(1, 1), node(2, 3), node(3, 4)}, cpus(1), "there 3"},
		{"where it is the best itself it stays", []Node{node(1, 4), node(2, 4), node(3, 3)}, cpus(1), "here 1"},
		{"what is used most counts: memory", []Node{node(1, 10, memory(10)), node(2, 8, memory(60))}, cpus(1), "there 2"},
		{"what is used most counts: the store", []Node{node(1, 10, held(70)), node(2, 5, held(20))}, cpus(1), "there 2"},
		{"a node that is free comes before one that could be", []Node{node(1, 0), node(2, 1)}, cpus(1), "there 2"},
		{"none is free", []Node{node(1, 0), node(2, 1)}, cpus(2), "wait"},
		{"a draining node takes nothing, nor does a dead one", []Node{node(1, 0), node(2, 10, draining), node(3, 10, dead)}, cpus(1), "wait"},
		{"without a GPU asked nodes that have one are spared", []Node{node(1, 10, gpu), node(2, 3)}, cpus(1), "there 2"},
		{"until no other is free", []Node{node(1, 10, gpu), node(2, 0)}, cpus(1), "here 1"},
		{"a GPU is asked", []Node{node(1, 10), node(2, 3, gpu)}, gpus(1), "there 2"},
		{"what waits on a node comes first", []Node{node(1, 10, waits(cpus(1).Shape)), node(2, 3)}, cpus(1), "there 2"},
		{"and is no matter for another shape", []Node{node(1, 10, waits(gpus(1).Shape)), node(2, 3)}, cpus(1), "here 1"},
	} {
		c.run(t)
	}
}

// Of ten nodes two are the best fifth, and of twenty that are fuller the four emptiest.
func TestOneOfTheBestIsDrawn(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		free  func(i int) int64
		want  []ids.Home
	}{
		{"idle ones", 10, func(int) int64 { return 10 }, []ids.Home{2, 3}},
		{"idle ones, of fewer than five nodes", 4, func(int) int64 { return 10 }, []ids.Home{2}},
		{"the emptiest", 20, func(i int) int64 { return int64(1 + i%5) }, []ids.Home{5, 10, 15, 20}},
		{"idle ones and the emptiest", 20, func(i int) int64 {
			if i == 4 || i == 9 {
				return 9
			}
			return int64(i % 5)
		}, []ids.Home{5, 10, 15, 20}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var nodes []Node
			for i := range c.nodes {
				nodes = append(nodes, node(ids.Home(i+1), c.free(i)))
			}
			nodes[0].Free[0].Amount = 0 // it does not stay
			got := drawn(deciding(t, 1, DefaultConfig(), nodes), cpus(1), 400)
			if !slices.Equal(keys(got), c.want) {
				t.Fatalf("drawn %v, want each of %v", got, c.want)
			}
			for id, n := range got {
				if n < 400/len(c.want)/2 {
					t.Errorf("node %v is drawn %d times of 400", id, n)
				}
			}
		})
	}
}

// Tasks that are wanted together fill this node up to a half, then the others one after the other, and then all of them evenly.
func TestTasksFillNodesToAHalfFirst(t *testing.T) {
	for n, want := range map[int]map[ids.Home]int{
		5:  {1: 5},
		12: {1: 5, 2: 5, 3: 2},
		15: {1: 5, 2: 5, 3: 5},
		21: {1: 7, 2: 7, 3: 7},
		40: {1: 20, 2: 10, 3: 10}, // what no node has room for waits here
	} {
		d := deciding(t, 1, best(), []Node{node(1, 10), node(2, 10), node(3, 10)})
		got := told(d.step(FromOwner{d.key(1).Job, sched.Want{Key: d.key(1), Opts: &wire.TaskOptions{Func: "f"}, Backlog: n}}))
		if !maps.Equal(got, want) {
			t.Errorf("of %d tasks the nodes are told %v, want %v", n, got, want)
		}
	}
}
