package cluster

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

func TestSpillback(t *testing.T) {
	n := node(2, 0, waits(cpus(1).Shape)) // three wait
	for _, c := range []struct {
		of           Demand
		placed, room int
		want         int
	}{
		{cpus(1), 5, 9, 3}, // the others were granted, or are about to be
		{cpus(1), 2, 9, 2},
		{cpus(1), 5, 1, 1},
		{cpus(1), 5, 0, 0},
		{cpus(2), 5, 9, 0},
	} {
		if got := spillback(&n, &c.of.Shape, c.placed, c.room); got != c.want {
			t.Errorf("of %d placed %d go elsewhere, where there is room for %d; want %d", c.placed, got, c.room, c.want)
		}
	}
}

// A node that had room by its report turns out to be busy: what was placed there goes to a node that has room, and nowhere else.
func TestWhatABusyNodeCannotTakeGoesToAnother(t *testing.T) {
	to2 := cpus(1).with(func(d *Demand) { d.Strategy = Strategy{Kind: Affinity, Node: 2} })
	for name, c := range map[string]struct {
		d     Demand
		says  func(*Node) // node 2, of itself
		three int64       // free on node 3
		after time.Duration
		want  map[ids.Home]int // what nodes are told then
	}{
		"another has room":               {cpus(1), waits(cpus(1).Shape), 10, DefaultPatience, map[ids.Home]int{2: 0, 3: 1}},
		"it was asked just now":          {cpus(1), waits(cpus(1).Shape), 10, DefaultPatience / 4, nil},
		"no other has room":              {cpus(1), waits(cpus(1).Shape), 0, DefaultPatience, nil},
		"what waits there is another's":  {cpus(1), waits(cpus(2).Shape), 10, DefaultPatience, nil},
		"its worker starts":              {cpus(1), func(*Node) {}, 10, DefaultPatience, nil},
		"it must run there and no other": {to2, waits(to2.Shape), 10, DefaultPatience, nil},
	} {
		d := deciding(t, 1, best(), []Node{node(1, 0), node(2, 1), node(3, 0)})
		if x := d.decide(c.d); x.String() != "there 2" {
			t.Fatalf("%s: placed %v", name, x)
		}
		full, three := node(2, 0, c.says), node(3, c.three)
		full.Version, three.Version = 2, 2
		d.step(NodeReport{full})
		d.step(NodeReport{three})
		d.now += int64(c.after)
		d.now += int64(DefaultPatience) - d.now%int64(DefaultPatience) // when it looks
		if c.after < DefaultPatience {
			d.now -= int64(DefaultPatience)
		}
		got := told(d.step(Timer{}))
		if len(got) != len(c.want) || got[2] != c.want[2] || got[3] != c.want[3] {
			t.Errorf("%s: told are %v, want %v", name, got, c.want)
		}
	}
}
