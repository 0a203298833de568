package model

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"
)

// lan is a cluster of nodes that say of themselves about what real ones do.
func lan(nodes, servers int, seed uint64) Config {
	return Config{Nodes: nodes, Servers: min(servers, nodes), Seed: seed, Costs: LAN(), Row: Row()}
}

// outcome is what came of a run in which nodes ended.
type outcome struct {
	verdicts []Verdict // since then
	over     int       // lives that were ended
	sent     float64   // a node and second, before that
	received float64
	busy     float64 // processors of the leader
	write    time.Duration
	told     int // in all
}

// end has so many of the nodes end at once after some seconds, and waits for the verdicts.
func end(cfg Config, kills int, accused bool) (o outcome) {
	const settled = 5 * time.Second
	t := New(cfg)
	t.Run(int64(2 * time.Second))
	before, busy := make([][2]uint64, cfg.Nodes), t.Busy(0)
	for n := range cfg.Nodes {
		before[n][0], before[n][1] = t.Traffic(n)
	}
	t.Run(int64(2*time.Second + settled))
	for n := cfg.Servers; n < cfg.Nodes; n++ {
		sent, received := t.Traffic(n)
		o.sent += float64(sent-before[n][0]) / settled.Seconds() / float64(cfg.Nodes-cfg.Servers)
		o.received += float64(received-before[n][1]) / settled.Seconds() / float64(cfg.Nodes-cfg.Servers)
	}
	o.busy = (t.Busy(0) - busy).Seconds() / settled.Seconds()
	began := t.Now()
	for n := range kills {
		t.Kill(cfg.Servers + n)
		if accused {
			t.Accuse(cfg.Servers + n)
		}
	}
	t.Run(began + int64(15*time.Second))
	for n := range kills {
		v := t.Verdict(cfg.Servers + n)
		v.First, v.Last = v.First-began, v.Last-began
		o.told += v.Told
		o.verdicts = append(o.verdicts, v)
	}
	writes := slices.Sorted(slices.Values(t.Writes()))
	o.over, o.write = t.Over(), writes[len(writes)/2]
	return o
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	a, b, other := end(lan(20, 3, 1), 2, true), end(lan(20, 3, 1), 2, true), end(lan(20, 3, 2), 2, true)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, other) {
		t.Errorf("%+v, again %+v, of another seed %+v", a, b, other)
	}
}

// Whoever ends is over for all others within the judge's times, and nobody else is.
func TestADeathIsKnownEverywhere(t *testing.T) {
	for _, c := range []struct {
		nodes, servers, kills int
		accused               bool
	}{{4, 1, 1, true}, {16, 1, 3, true}, {32, 3, 3, false}, {300, 3, 30, true}} {
		o := end(lan(c.nodes, c.servers, 1), c.kills, c.accused)
		low, high := 7*time.Second, 10*time.Second // after the last heartbeat, which was up to a second before
		if c.accused {
			low, high = 4*time.Second, 7*time.Second
		}
		for i, v := range o.verdicts {
			if v.Told != c.nodes-c.kills || time.Duration(v.First) < low || time.Duration(v.Last) > high {
				t.Errorf("%+v: the end of node %d is told %d nodes, from %v to %v", c, c.servers+i, v.Told, time.Duration(v.First), time.Duration(v.Last))
			}
		}
		if o.over != c.kills {
			t.Errorf("%+v: %d lives are ended", c, o.over)
		}
	}
}

// What a node is sent does not grow with the number of nodes beyond what heartbeats may cost.
func TestWhatTheTablesCost(t *testing.T) {
	sizes := []int{10, 100, 1000}
	if os.Getenv("MOBULA_STRESS") != "" {
		sizes = append(sizes, 10_000)
	}
	for _, n := range sizes {
		o := end(lan(n, 3, 1), 0, false)
		t.Logf("%5d nodes: a node sends %.0f and is sent %.0f bytes a second, a heartbeat takes %v, the leader's processors are busy for %.0f %% of one", n, o.sent, o.received,
			o.write, 100*o.busy)
		if o.over != 0 || o.received > 20<<10 || o.busy > 8 {
			t.Errorf("%d nodes: %+v", n, o)
		}
	}
}

// A disk that is too slow for the heartbeats ends nobody's life: the judge's own are as late as the others'.
func TestASlowDiskEndsNobody(t *testing.T) {
	cfg := lan(60, 3, 1)
	cfg.Costs.Sync = 2500 * time.Millisecond
	if o := end(cfg, 0, false); o.over != 0 || o.write < 2*time.Second {
		t.Errorf("a heartbeat takes %v, and %d lives are ended", o.write, o.over)
	}
}

func BenchmarkSecond(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			t := New(lan(nodes, 3, 1))
			for b.Loop() {
				t.Run(t.Now() + int64(time.Second))
			}
		})
	}
}
