package model

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"mobula/gcs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/internal/vclock"
	"mobula/remote"
	"mobula/remote/membership"
)

// Beat is how often a node beats.
const Beat = time.Second

// Tables are the control plane of a cluster.
type Tables struct {
	clock    vclock.Clock
	cfg      Config
	random   *rand.Rand
	rows     map[gcs.Bucket]map[string]gcs.Changed
	last     map[gcs.Bucket]uint64
	log      log
	servers  []*server
	nodes    []*node
	rowSize  int // of a node's row as JSON, bytes
	verdicts map[int]*Verdict
	writes   []time.Duration
}

// Verdict is that a node's life is over, and when the nodes that live were told so.
type Verdict struct {
	First, Last int64
	Told        int
}

// New makes a cluster in which all nodes are there and have written their rows.
func New(cfg Config) *Tables {
	t := &Tables{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x5851f42d4c957f2d)), rows: make(map[gcs.Bucket]map[string]gcs.Changed), last: make(map[gcs.Bucket]uint64),
		verdicts: make(map[int]*Verdict),
	}
	for _, b := range gcs.Buckets {
		t.rows[b] = make(map[string]gcs.Changed)
	}
	t.rows[gcs.Beats] = make(map[string]gcs.Changed)
	t.rowSize = jsonSize(t.row(cfg.Nodes))
	for i := range cfg.Nodes {
		t.put(gcs.HomeRecord{Row: register.Row{Home: homeOf(i), Epoch: 1}})
		t.put(t.row(i))
	}
	for i := range cfg.Servers {
		t.servers = append(t.servers, t.newServer(i))
	}
	for i := range cfg.Nodes {
		t.nodes = append(t.nodes, t.newNode(i))
	}
	return t
}

func homeOf(node int) ids.Home { return ids.Home(node + 1) }

// size is how many bytes a record has. The rows of nodes have about as many each.
func (t *Tables) size(r gcs.Record) int {
	if _, ok := r.(gcs.BeatsRecord); ok {
		return jsonSize(r)
	}
	return t.rowSize
}

// jsonSize is how many bytes a value has as JSON.
func jsonSize(v any) int {
	text, _ := json.Marshal(v) // nothing here cannot be encoded
	return len(text)
}

// row is what a node says of itself.
func (t *Tables) row(node int) gcs.NodeRecord {
	r := t.cfg.Row
	r.Home, r.Epoch = homeOf(node), 1
	return r
}

// put writes a row and gives the change.
func (t *Tables) put(r gcs.Record) gcs.Changed {
	b := r.Bucket()
	t.last[b]++
	c := gcs.Changed{Bucket: b, Key: r.Key(), Record: r, Revision: t.last[b]}
	t.rows[b][c.Key] = c
	return c
}

// latency is how long a message takes; within a server nothing.
func (t *Tables) latency() int64 {
	l := int64(t.cfg.Costs.Latency)
	return l + t.random.Int64N(l+1)
}

// Now is how long it has run.
func (t *Tables) Now() int64 { return t.clock.Now() }

// Run goes on until then.
func (t *Tables) Run(until int64) { t.clock.Run(until) }

// Kill ends a node, which is no server, now.
func (t *Tables) Kill(node int) { t.nodes[node].running = false }

// Accuse has every server hear that another node, which is none of the model's, does not hear this one.
func (t *Tables) Accuse(node int) {
	for _, s := range t.servers {
		t.clock.After(time.Duration(t.latency()), func() { s.step(gcs.Accused{By: homeOf(len(t.nodes)), Life: remote.Life{Home: homeOf(node), Epoch: 1}}) })
	}
}

// Verdict gives what was told of a node; Told 0: nothing.
func (t *Tables) Verdict(node int) Verdict {
	if v := t.verdicts[node]; v != nil {
		return *v
	}
	return Verdict{}
}

// Over is how many lives were ended.
func (t *Tables) Over() int { return len(t.verdicts) }

// Traffic is what a node that is no server has sent and was sent so far, in bytes.
func (t *Tables) Traffic(node int) (sent, received uint64) {
	n := t.nodes[node]
	return n.sent, n.received
}

// ServerSent is what a server has sent so far, in bytes, to nodes and other servers.
func (t *Tables) ServerSent(server int) uint64 { return t.servers[server].sent }

// Busy is how long a server's processors have worked so far, in all.
func (t *Tables) Busy(server int) time.Duration { return t.servers[server].worked }

// Writes are how long it took, from when each heartbeat was told, until it was written and acknowledged, in order.
func (t *Tables) Writes() []time.Duration { return t.writes }

// judgeConfig is production's.
func judgeConfig() *membership.JudgeConfig {
	j := membership.DefaultJudgeConfig()
	j.Beat = Beat
	return &j
}
