package node

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"

	"mobula/internal/ids"
	"mobula/raylet/internode"
)

// mostOutput is how many bytes of a job's output go to its home in a second: messages of tasks go the same way.
const mostOutput = 1 << 20

// mirrorOf gives who takes what the workers of a job write; nil: as the node is told for its own jobs. The output of another node's job is not for whoever
// looks at this node.
func (l *links) mirrorOf(job ids.JobID) io.Writer {
	if l.alone() || job.Home() == l.numbers.Row().Home {
		return nil
	}
	if a := l.agent(job); a != nil && a.said.Output {
		return &homeward{job: job, now: l.clock.Now, full: a.box.Full, say: func(m *internode.WorkerOutput) { l.say(job.Home(), m) }}
	}
	return io.Discard
}

// homeward takes what a worker of another node's job writes to the job's home. It never waits: what is too much, or has no room on the way, is left out, and counted.
type homeward struct {
	job  ids.JobID
	now  func() int64
	full func() bool // the way there has no room
	say  func(*internode.WorkerOutput)

	mu    sync.Mutex
	since int64  // guarded by mu: begin of a second
	bytes int    // guarded by mu: in that second
	lost  uint64 // guarded by mu: lines that were left out lately
}

// Write takes whole lines.
func (h *homeward) Write(lines []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.now(); now-h.since > int64(time.Second) {
		h.since, h.bytes = now, 0
	}
	if h.bytes+len(lines) > mostOutput || h.full() {
		h.lost += uint64(bytes.Count(lines, []byte{'\n'}))
		return len(lines), nil
	}
	h.bytes += len(lines)
	h.say(&internode.WorkerOutput{Job: h.job, Lines: bytes.Clone(lines), Lost: h.lost})
	h.lost = 0
	return len(lines), nil
}

// workerOutput passes on what workers on another node wrote, each line after the node's name.
func (l *links) workerOutput(node ids.Home, m *internode.WorkerOutput) {
	if l.cfg.WorkerOutput == nil {
		return
	}
	name := l.nameOf(node)
	var out []byte
	if m.Lost > 0 {
		out = fmt.Appendf(out, "(mobula) %d lines that workers on node %s wrote are left out here; mobula logs has them\n", m.Lost, name)
	}
	for line := range bytes.Lines(m.Lines) {
		out = append(fmt.Appendf(out, "(%s) ", name), line...)
	}
	_, _ = l.cfg.WorkerOutput.Write(out) // nobody is to stop because nobody reads it
}
