package run

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mobula/graph"
	"mobula/internal/ids"
)

// Progress is how far a graph is. Its tasks are waiting, queued, processing, done or failed, or were never needed.
type Progress struct {
	Task       ids.TaskID // that the graph is
	Name       string     // of its actor
	Started    time.Time
	Tasks      int
	Waiting    int // for what they take
	Queued     int // root tasks that could run and are withheld
	Processing int // with their owner, or in line to it
	InLine     int // of them
	Done       int
	Failed     int   // of themselves
	Bytes      int64 // of results that are held
	Peak       int64 // the most that they were
}

// Running gives the graphs that run on the node. It waits for none of them.
func (h *Host) Running() []Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Progress, 0, len(h.running))
	for r := range h.running {
		p := Progress{Task: r.parent, Name: r.name, Started: r.started, Tasks: r.w.graph.Len()}
		r.ledger.gauges.read(&p)
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Progress) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// gauges are what changes of a Progress. The core writes them after each step, whoever asks reads them.
type gauges struct {
	waiting, queued, processing, inLine, done, failed, bytes, peak atomic.Int64
}

func (g *gauges) write(c *core) {
	g.waiting.Store(int64(c.g.Count(graph.Waiting) + c.g.Count(graph.NoWorker)))
	g.queued.Store(int64(c.g.Count(graph.Queued)))
	g.processing.Store(int64(c.g.Count(graph.Processing)))
	g.inLine.Store(int64(c.g.Count(graph.Processing) - c.flying - c.away))
	g.done.Store(int64(c.ledger.ran))
	g.failed.Store(int64(c.ledger.failures))
	g.bytes.Store(c.g.Bytes())
	g.peak.Store(c.ledger.peak)
}

func (g *gauges) read(p *Progress) {
	p.Waiting, p.Queued, p.Processing, p.InLine = int(g.waiting.Load()), int(g.queued.Load()), int(g.processing.Load()), int(g.inLine.Load())
	p.Done, p.Failed, p.Bytes, p.Peak = int(g.done.Load()), int(g.failed.Load()), g.bytes.Load(), g.peak.Load()
}
