package phases

import (
	"slices"

	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/telemetry"
	"mobula/wire"
)

// maxLinks is OpenTelemetry's default for one span.
const maxLinks = 128

// links names the tasks that make a new task's arguments, if they have spans.
func (b *Builder) links(r *record, s *wire.TaskSpec) {
	for i := range s.Args {
		id := s.Args[i].Ref
		if id == (ids.ObjectID{}) || id.Index&ids.PutBit != 0 {
			continue
		}
		l, ok := b.ended.of[id.Task]
		if maker := b.open[id.Task]; maker != nil {
			l, ok = maker.link(), true
		}
		if ok && !slices.Contains(r.links, l) {
			if r.links = append(r.links, l); len(r.links) == maxLinks {
				return
			}
		}
	}
}

// link names the task's own span.
func (r *record) link() telemetry.Link {
	return telemetry.Link{TraceID: r.trace, ID: telemetry.SpanOf(r.id, r.first, telemetry.PhaseTask)}
}

// failed marks the run of a failed attempt if the task will run again.
func (r *record) failed(ch *owner.Transition) {
	if ch.Reason == nil {
		return
	}
	for i, s := range slices.Backward(r.segs) {
		if s.phase == telemetry.PhaseRun && s.attempt == ch.Attempt {
			r.segs[i].err = ch.Reason
			return
		}
	}
}

// remembered has the spans of the tasks that ended last.
type remembered struct {
	limit int
	of    map[ids.TaskID]telemetry.Link
	ring  []ids.TaskID
	next  int
}

func (m *remembered) add(id ids.TaskID, l telemetry.Link) {
	if m.of == nil {
		m.of = make(map[ids.TaskID]telemetry.Link)
	}
	if _, again := m.of[id]; !again {
		if len(m.ring) < m.limit {
			m.ring = append(m.ring, id)
		} else {
			delete(m.of, m.ring[m.next])
			m.ring[m.next] = id
			m.next = (m.next + 1) % m.limit
		}
	}
	m.of[id] = l
}
