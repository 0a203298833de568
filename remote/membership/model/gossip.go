package model

import (
	"math/rand/v2"
	"time"

	"mobula/internal/heap"
)

// Change is that a node gives another up, or takes it for alive again.
type Change struct {
	At    int64
	Node  int // who
	Other int // whom
	Up    bool
}

// Gossip is nodes that gossip.
type Gossip struct {
	cfg     Config
	random  *rand.Rand
	now     int64
	seq     uint64
	due     []event
	nodes   []node
	beliefs [][]belief // by other, then by node; nil: all have it alive, as at the beginning
	touched []int32    // those that are not nil
	cuts    map[[2]int32]bool
	told    func(Change)
}

// node is a process.
type node struct {
	running   bool
	still     int64 // it stands still until then
	awareness int
	turn      int32 // of its present order of probes
	stride    int32 // the order: every stride-th node, from first
	first     int32
	phase     [2]int64 // of probes, of gossip
	ticking   bool     // a round of gossip is due
	queue     queue
	packets   uint64
	bytes     uint64
}

// event is something that happens at a node.
type event struct {
	at    int64
	seq   uint64
	do    action
	node  int32
	other int32
	count uint32    // of a suspicion: which one
	since int64     // of a probe
	said  []message // of a packet
}

// action is what happens.
type action uint8

const (
	probe    action = iota // it probes the next node
	probed                 // the time for the answer is over
	gossip                 // it gossips
	exchange               // it exchanges all state with another
	hear                   // a packet arrives
	expire                 // its suspicion is over
)

// before orders events by time, and those of one moment as they came.
func before(a, b *event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// New makes nodes that know and trust each other, in the midst of their probes.
func New(cfg Config) *Gossip {
	g := &Gossip{
		cfg: cfg, random: rand.New(rand.NewPCG(cfg.Seed, 0x9e3779b97f4a7c15)), nodes: make([]node, cfg.Nodes),
		beliefs: make([][]belief, cfg.Nodes), cuts: make(map[[2]int32]bool),
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		n.running = true
		n.queue = newQueue()
		n.phase = [2]int64{g.random.Int64N(int64(cfg.Rules.Probe)), g.random.Int64N(int64(cfg.Rules.Gossip))}
		g.shuffle(n)
		n.turn = g.random.Int32N(int32(cfg.Nodes))
		g.at(event{at: n.phase[0], do: probe, node: int32(i)})
		g.at(event{at: g.random.Int64N(int64(g.cfg.Rules.exchange(cfg.Nodes))), do: exchange, node: int32(i)})
	}
	return g
}

// Kill ends a node's process now.
func (g *Gossip) Kill(n int) { g.nodes[n].running = false }

// Stop has a node stand still for so long: what is sent to it waits, and it does nothing.
func (g *Gossip) Stop(n int, d time.Duration) { g.nodes[n].still = g.now + int64(d) }

// Cut has nothing pass between two nodes, or ends that.
func (g *Gossip) Cut(a, b int, cut bool) {
	g.cuts[[2]int32{int32(a), int32(b)}], g.cuts[[2]int32{int32(b), int32(a)}] = cut, cut
}

// Now is how long it has run.
func (g *Gossip) Now() int64 { return g.now }

// Sent is what a node has sent so far, in packets and bytes.
func (g *Gossip) Sent(n int) (packets, bytes uint64) { return g.nodes[n].packets, g.nodes[n].bytes }

// Run goes on until then, and tells each change when it happens.
func (g *Gossip) Run(until int64, told func(Change)) {
	g.told = told
	for len(g.due) > 0 && g.due[0].at <= until {
		ev := heap.Pop(&g.due, before)
		g.now = max(g.now, ev.at)
		n := &g.nodes[ev.node]
		switch {
		case !n.running:
		case n.still > g.now:
			ev.at = n.still
			g.at(ev)
		default:
			g.happen(n, ev)
		}
	}
	g.now = until
	g.told = nil
}

func (g *Gossip) happen(n *node, ev event) {
	switch ev.do {
	case probe:
		g.probe(n, ev.node)
	case probed:
		g.probed(n, ev)
	case gossip:
		g.gossip(n, ev.node)
	case exchange:
		g.exchange(ev.node)
	case hear:
		for _, m := range ev.said {
			g.hear(ev.node, m)
		}
	case expire:
		g.expire(ev)
	}
}

func (g *Gossip) at(ev event) {
	g.seq++
	ev.seq = g.seq
	heap.Push(&g.due, ev, before)
}

// latency is how long a packet takes.
func (g *Gossip) latency() int64 {
	l := int64(g.cfg.Latency)
	return l + g.random.Int64N(l+1)
}

// answers tells whether a node would answer another now.
func (g *Gossip) answers(from, to int32) bool {
	n := &g.nodes[to]
	return n.running && n.still <= g.now && !g.cuts[[2]int32{from, to}]
}

// What packets and streams have besides messages, in bytes: encryption, the cluster's name, a probe and its answer.
const (
	overhead = 60
	ping     = 60
)

// send has a packet arrive. What is sent to a process that is gone, or across a cut, is lost.
func (g *Gossip) send(from, to int32, said []message, bytes int) {
	n := &g.nodes[from]
	n.packets++
	n.bytes += uint64(bytes + overhead)
	if len(said) > 0 && g.nodes[to].running && !g.cuts[[2]int32{from, to}] {
		g.at(event{at: g.now + g.latency(), do: hear, node: to, said: said})
	}
}
