package cluster

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mobula/e2e/harness"
	"mobula/gcs/model"
	"mobula/internal/netns/nodes"
)

// gcsPort is where a control-plane server takes the connections of nodes.
const gcsPort = nodes.Port + 2

// The model of the control plane is like real nodes: in the bytes that a node sends it and is sent, and in when the end of a node is known everywhere. It measures,
// so it is a stress test.
func TestStressTheModelOfTheTablesIsLikeRealNodes(t *testing.T) {
	if os.Getenv("MOBULA_STRESS") == "" {
		t.Skip("set MOBULA_STRESS=1, on a quiet machine")
	}
	for _, n := range []int{16, 32} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			measured, modelled := realTables(t, n), modelledTables(n)
			t.Logf("a node sends %.0f bytes a second, in the model %.0f", measured.sent, modelled.sent)
			t.Logf("and is sent %.0f, in the model %.0f", measured.received, modelled.received)
			t.Logf("the server's processes are busy for %.2f %%, in the model with the tables for %.2f %%", 100*measured.busy, 100*modelled.busy)
			t.Logf("the end of a node is known after %v to %v, in the model %v to %v", measured.first, measured.last, modelled.first, modelled.last)
			for what, is := range map[string][2]float64{"sends": {measured.sent, modelled.sent}, "is sent": {measured.received, modelled.received}} {
				if math.Abs(is[0]/is[1]-1) > apart {
					t.Errorf("a node %s %.0f bytes a second, in the model %.0f", what, is[0], is[1])
				}
			}
			if measured.first < modelled.first-slack || measured.last > modelled.last+slack {
				t.Errorf("the end of a node is known after %v to %v, in the model %v to %v", measured.first, measured.last, modelled.first, modelled.last)
			}
		})
	}
}

// tables is what the control plane of a cluster costs, and how fast it is.
type tables struct {
	sent, received float64 // by a node, bytes a second
	busy           float64 // share of a processor, of the server
	first, last    time.Duration
}

const (
	settles = 10 * time.Second // after a start
	watched = 10 * time.Second
	ended   = 3 // nodes

	apart = 0.15            // bytes
	slack = time.Second / 2 // half a heartbeat, on a loaded machine
	seeds = 20              // of the model: its times are those from the first to the last of so many runs
)

func realTables(t *testing.T, n int) (out tables) {
	t.Helper()
	ctx, cancel := harness.Limit(t)
	defer cancel()
	all := start(t, network(t, n)).Nodes()
	<-time.After(settles)
	before, busy := gcsTraffic(t, all), processorTime(t, all[0].Host)
	begun := time.Now()
	<-time.After(watched)
	after, took := gcsTraffic(t, all), time.Since(begun).Seconds()
	out.busy = (processorTime(t, all[0].Host) - busy).Seconds() / took
	for i := range all[1:] {
		out.sent += float64(after[i][0]-before[i][0]) / took / float64(n-1)
		out.received += float64(after[i][1]-before[i][1]) / took / float64(n-1)
	}
	killed := time.Now()
	for _, n := range all[1 : 1+ended] {
		must(t, n.Kill(ctx))
	}
	living := slices.Delete(slices.Clone(all), 1, 1+ended)
	var at []time.Time
	harness.Eventually(t, ctx, "all nodes know of all ends", func() bool {
		at = nil
		for _, n := range living {
			at = append(at, verdicts(t, n)...)
		}
		return len(at) == ended*len(living)
	})
	out.first, out.last = slices.MinFunc(at, time.Time.Compare).Sub(killed), slices.MaxFunc(at, time.Time.Compare).Sub(killed)
	return out
}

var overAt = regexp.MustCompile(`time=(\S+) level=WARN msg="a node's life is over"`)

// verdicts is when a node has heard of ends, by its log.
func verdicts(t *testing.T, n *nodes.Node) (out []time.Time) {
	t.Helper()
	for _, m := range overAt.FindAllStringSubmatch(n.Log(), -1) {
		at, err := time.Parse(time.RFC3339Nano, m[1])
		must(t, err)
		out = append(out, at)
	}
	return out
}

var socketBytes = regexp.MustCompile(`bytes_sent:(\d+).* bytes_received:(\d+)`)

// gcsTraffic is what each node but the first has sent to the control plane and was sent, in bytes of the streams.
func gcsTraffic(t *testing.T, all []*nodes.Node) (out [][2]int64) {
	t.Helper()
	for _, n := range all[1:] {
		var text []byte
		must(t, n.Host.Do(func() (err error) {
			text, err = exec.Command("ss", "-tinH", "state", "established", "dport", "=", ":"+strconv.Itoa(gcsPort)).Output()
			return err
		}))
		m := socketBytes.FindStringSubmatch(strings.ReplaceAll(string(text), "\n", " "))
		if m == nil {
			t.Fatalf("the node on %v has no connection to the control plane: %s", n.Host.Addr, text)
		}
		var sums [2]int64
		for i := range sums {
			var err error
			sums[i], err = strconv.ParseInt(m[1+i], 10, 64)
			must(t, err)
		}
		out = append(out, sums)
	}
	return out
}

// modelledTables runs the model as often as there are seeds.
func modelledTables(n int) (out tables) {
	for seed := range uint64(seeds) {
		one := modelledOnce(n, seed)
		if seed == 0 {
			out = one
		}
		out.first, out.last = min(out.first, one.first), max(out.last, one.last)
	}
	return out
}

func modelledOnce(n int, seed uint64) (out tables) {
	m := model.New(model.Config{Nodes: n, Servers: 1, Seed: seed, Costs: model.LAN(), Row: model.Row()})
	m.Run(int64(settles))
	busy := m.Busy(0)
	var sent, received uint64
	for i := 1; i < n; i++ {
		s, r := m.Traffic(i)
		sent, received = sent-s, received-r
	}
	m.Run(int64(settles + watched))
	out.busy = (m.Busy(0) - busy).Seconds() / watched.Seconds()
	for i := 1; i < n; i++ {
		s, r := m.Traffic(i)
		sent, received = sent+s, received+r
	}
	all := watched.Seconds() * float64(n-1)
	out.sent, out.received = float64(sent)/all, float64(received)/all
	for i := 1; i <= ended; i++ {
		m.Kill(i)
		m.Accuse(i) // their machines close the connections
	}
	killed := m.Now()
	m.Run(killed + int64(15*time.Second))
	for i := 1; i <= ended; i++ {
		v := m.Verdict(i)
		if first := time.Duration(v.First - killed); out.first == 0 || first < out.first {
			out.first = first
		}
		out.last = max(out.last, time.Duration(v.Last-killed))
	}
	return out
}
