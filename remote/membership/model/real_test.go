package model

import (
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"mobula/internal/testkit"

	"github.com/hashicorp/memberlist"
)

// large is the clusters that there is time and memory for, and how many of them are killed.
func large() [][2]int {
	if os.Getenv("MOBULA_STRESS") != "" {
		return [][2]int{{10, 1}, {100, 10}, {1000, 100}, {10000, 100}}
	}
	return [][2]int{{10, 1}, {100, 10}, {300, 30}}
}

// quick is memberlist's timing five times as fast: a test has not the time for that of a data centre, and a machine with two cores is not fast enough for more.
func quick() Rules {
	r := LAN()
	r.Probe, r.ProbeTimeout, r.Gossip, r.PushPull = r.Probe/5, r.ProbeTimeout/5, r.Gossip/5, r.PushPull/5
	return r
}

// member is one memberlist node, and when it gave others up.
type member struct {
	*memberlist.Memberlist
	name string

	mu   sync.Mutex
	gone map[string]time.Time
}

func (n *member) NotifyJoin(*memberlist.Node)   {}
func (n *member) NotifyUpdate(*memberlist.Node) {}
func (n *member) NotifyLeave(other *memberlist.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[other.Name] = time.Now()
}

// killReal does with nodes on loopback what kill does in the model. wrong says which nodes that live were given up.
func killReal(t *testing.T, nodes, kills int, r Rules) (times []time.Duration, wrong string) {
	t.Helper()
	all := make([]*member, nodes)
	for i := range all {
		n := &member{name: fmt.Sprint("node", i), gone: make(map[string]time.Time)}
		c := memberlist.DefaultLANConfig()
		c.Name, c.BindAddr, c.BindPort, c.AdvertisePort = n.name, "127.0.0.1", 0, 0
		c.ProbeInterval, c.ProbeTimeout, c.GossipInterval, c.PushPullInterval = r.Probe, r.ProbeTimeout, r.Gossip, r.PushPull
		c.Events, c.Logger, c.EnableCompression = n, log.New(io.Discard, "", 0), false
		var err error
		if n.Memberlist, err = memberlist.Create(c); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = n.Shutdown() }()
		all[i] = n
		if i > 0 {
			if _, err := n.Join([]string{all[0].LocalNode().Address()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	testkit.Eventually(t, "the nodes meet", func() bool {
		return !slices.ContainsFunc(all, func(n *member) bool { return n.NumMembers() != nodes })
	})
	began := time.Now()
	for _, n := range all[:kills] {
		if err := n.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, "the nodes agree", func() bool {
		return !slices.ContainsFunc(all[kills:], func(n *member) bool {
			n.mu.Lock()
			defer n.mu.Unlock()
			return len(n.gone) < kills
		})
	})
	for _, n := range all[kills:] {
		for other, at := range n.gone {
			if slices.ContainsFunc(all[kills:], func(n *member) bool { return n.name == other }) {
				wrong += fmt.Sprintf("%s gave %s up, which lives; ", n.name, other)
			}
			times = append(times, at.Sub(began))
		}
	}
	slices.Sort(times)
	return times, wrong
}

// The model's times of giving dead nodes up are those of real nodes: the first, the middle one and the last of a run lie where those of many runs of the model lie.
// On a loaded machine nodes are under suspicion before they are killed, so it is measured up to three times, and is a stress test.
func TestStressTheModelIsLikeRealNodes(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1, on a quiet machine")
	}
	const nodes, kills = 32, 3
	shares := []float64{0, 0.25, 0.5, 0.75, 1}
	model := make([][]time.Duration, len(shares))
	for seed := range uint64(200) {
		cfg := Config{Nodes: nodes, Seed: seed, Latency: 100 * time.Microsecond, Rules: quick()}
		out := kill(cfg, kills, time.Minute)
		for i, s := range shares {
			model[i] = append(model[i], part(out.times, s))
		}
	}
	for i := range model {
		slices.Sort(model[i])
	}
	for run := range 3 {
		measured, wrong := killReal(t, nodes, kills, quick())
		off := wrong + compare(t, shares, model, measured)
		if off == "" {
			return
		}
		t.Logf("run %d: %s", run, off)
	}
	t.Error("no run of three is like the model's")
}

// compare says where a run is not like those of the model; "": nowhere.
func compare(t *testing.T, shares []float64, model [][]time.Duration, measured []time.Duration) (off string) {
	t.Helper()
	for i, s := range shares {
		low, high := part(model[i], 0.01), part(model[i], 0.99)
		got := part(measured, s)
		t.Logf("%3.0f %% gave up by %v; in the model by %v to %v, half by %v", 100*s, got.Round(time.Millisecond), low.Round(time.Millisecond),
			high.Round(time.Millisecond), part(model[i], 0.5).Round(time.Millisecond))
		const slack = 200 * time.Millisecond // a loaded machine
		if got < low-slack/4 || got > high+slack {
			off += fmt.Sprintf("%.0f %% gave up by %v, in the model by %v to %v; ", 100*s, got, low, high)
		}
	}
	return off
}
