package shell

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mobula/graph/run"
	"mobula/internal/ids"
)

// Progress is the progress of a graph.
type Progress struct {
	Task    ids.TaskID // the task that the graph is
	Name    string     // of its actor
	Started time.Time
	Tasks   int
	run.Counts
}

// Running gives the graphs that run on the node. It does not wait for their actors.
func (h *Host) Running() []Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Progress, 0, len(h.running))
	for r := range h.running {
		out = append(out, Progress{Task: r.parent, Name: r.name, Started: r.started, Tasks: r.w.Len(), Counts: r.gauges.read()})
	}
	slices.SortFunc(out, func(a, b Progress) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// gauges are a graph's counts after its last step, for any goroutine to read.
type gauges struct {
	waiting, queued, processing, inLine, done, failed, bytes, peak atomic.Int64
}

func (g *gauges) write(c run.Counts) {
	g.waiting.Store(int64(c.Waiting))
	g.queued.Store(int64(c.Queued))
	g.processing.Store(int64(c.Processing))
	g.inLine.Store(int64(c.InLine))
	g.done.Store(int64(c.Done))
	g.failed.Store(int64(c.Failed))
	g.bytes.Store(c.Bytes)
	g.peak.Store(c.Peak)
}

func (g *gauges) read() run.Counts {
	return run.Counts{
		Waiting: int(g.waiting.Load()), Queued: int(g.queued.Load()), Processing: int(g.processing.Load()), InLine: int(g.inLine.Load()),
		Done: int(g.done.Load()), Failed: int(g.failed.Load()), Bytes: g.bytes.Load(), Peak: g.peak.Load(),
	}
}

// counted is a core that writes its counts to the gauges after each step.
type counted struct {
	*run.Core
	gauges *gauges
}

// Step implements actors.Core.
func (c counted) Step(now int64, ev run.Event) []run.Effect {
	out := c.Core.Step(now, ev)
	c.gauges.write(c.Core.Counts())
	return out
}
