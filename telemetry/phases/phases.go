package phases

import (
	"go.opentelemetry.io/otel/attribute"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/queue"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/telemetry"
	"mobula/wire"
)

// DefaultLimit is how many tasks may be under way. One takes about 500 bytes.
const DefaultLimit = 10_000

// Builder makes spans of transitions. Step it from one goroutine.
type Builder struct {
	limit   int
	open    map[ids.TaskID]*record
	oldest  queue.Queue[ids.TaskID] // in order of begin; may name tasks that have ended
	ended   remembered              // ended tasks whose results others may still take
	dropped uint64
	out     []telemetry.Span
}

// New makes a Builder for up to limit tasks at a time; 0 is DefaultLimit.
func New(limit int) *Builder {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Builder{limit: limit, open: make(map[ids.TaskID]*record), ended: remembered{limit: 2 * limit}}
}

// Dropped counts the tasks that were dropped because the limit was reached.
func (b *Builder) Dropped() uint64 { return b.dropped }

// record is a task under way. It does not keep the spec: its arguments may be large.
type record struct {
	id       ids.TaskID
	parent   [8]byte
	trace    [16]byte
	opts     *wire.TaskOptions
	kind     wire.TaskKind
	actor    ids.ActorID
	callsite string
	first    uint32 // number of attempts before this life of the task
	attempts uint32
	links    []telemetry.Link

	segs    []segment
	guess   int64 // the owner's estimate of its start; 0: none, or the start is known
	blocked []interval
	since   int64 // begin of the get it is blocked in; 0: none
}

// segment is a phase; it ends where the next one begins.
type segment struct {
	phase   telemetry.Phase
	start   int64
	attempt uint32
	worker  ids.ClientID
	err     *errs.Error // for a run: why the attempt failed and the task runs again
}

const maxSegments = 256

type interval struct{ start, end int64 }

// Step takes one transition of a sampled task and gives the task's spans if it has ended.
// The slice is valid until the next Step.
func (b *Builder) Step(ch *owner.Transition) []telemetry.Span {
	r := b.open[ch.Spec.ID]
	if r == nil {
		r = b.begin(ch)
	}
	r.attempts = max(r.attempts, ch.Attempt)
	switch {
	case ch.State == task.Running && ch.Times != nil:
		r.guess = 0
		r.unblock(ch.At)
		r.enter(telemetry.PhaseRun, ch.Times.Started, ch)
		r.enter(telemetry.PhaseSeal, ch.Times.Ended, ch)
	case ch.State == task.Running && r.since != 0:
		r.unblock(ch.At)
	case ch.State == task.Running:
		r.guess = ch.At
	case ch.State == task.RunningInGet:
		if r.since == 0 {
			r.since = ch.At
		}
	default:
		if r.guess != 0 || r.since != 0 { // it ended without a report: its worker died
			started := r.guess
			if started == 0 {
				started = r.since
			}
			r.guess = 0
			r.unblock(ch.At)
			r.enter(telemetry.PhaseRun, started, ch)
		}
		if ch.State.Terminal() {
			delete(b.open, r.id)
			b.ended.add(r.id, r.link())
			b.out = r.spans(b.out[:0], ch)
			return b.out
		}
		r.failed(ch)
		r.enter(phaseOf(ch.State), ch.At, ch)
	}
	return nil
}

func (b *Builder) begin(ch *owner.Transition) *record {
	for len(b.open) >= b.limit {
		id := b.oldest.Pop()
		if _, ok := b.open[id]; ok {
			delete(b.open, id)
			b.dropped++
		}
	}
	if b.oldest.Len() >= 2*b.limit {
		b.oldest.DeleteFunc(func(id ids.TaskID) bool { return b.open[id] == nil })
	}
	s := ch.Spec
	r := &record{
		id: s.ID, parent: s.Trace.SpanID, trace: s.Trace.TraceID, opts: s.Opts, kind: s.Kind, actor: s.Actor,
		callsite: s.Callsite, first: ch.Attempt, segs: make([]segment, 0, 8),
	}
	if s.Submitted != 0 && ch.Attempt == 0 {
		r.segs = append(r.segs, segment{phase: telemetry.PhaseSubmit, start: s.Submitted})
	}
	b.links(r, s)
	b.open[s.ID] = r
	b.oldest.Push(s.ID)
	return r
}

// phaseOf is the phase of a task in a state.
func phaseOf(s task.State) telemetry.Phase {
	switch s {
	case task.PendingArgs:
		return telemetry.PhaseArgs
	case task.PendingActor:
		return telemetry.PhaseTurn
	case task.PendingFetch:
		return telemetry.PhaseFetch
	case task.PendingStore:
		return telemetry.PhaseRestore
	case task.Backoff:
		return telemetry.PhaseBackoff
	case task.Submitted:
		return telemetry.PhasePush
	}
	return telemetry.PhaseQueue
}

// enter ends the phase under way and begins another.
func (r *record) enter(p telemetry.Phase, at int64, ch *owner.Transition) {
	s := segment{phase: p, start: at, attempt: ch.Attempt, worker: ch.Worker}
	if n := len(r.segs); n > 0 {
		last := &r.segs[n-1]
		s.start = max(at, last.start)
		switch {
		case last.phase == p && last.attempt == ch.Attempt:
			return
		case s.start == last.start && last.phase != telemetry.PhaseRun: // the phase took no time
			*last = s
			return
		case n == maxSegments: // a task that fails again and again: the last phase stands for the rest
			return
		}
	}
	r.segs = append(r.segs, s)
}

func (r *record) unblock(at int64) {
	if r.since != 0 {
		r.blocked = append(r.blocked, interval{r.since, max(at, r.since)})
		r.since = 0
	}
}

// spans are those of a task that has ended.
func (r *record) spans(out []telemetry.Span, ch *owner.Transition) []telemetry.Span {
	end := ch.At
	if n := len(r.segs); n == 0 {
		r.segs = append(r.segs, segment{phase: telemetry.PhaseArgs, start: ch.At, attempt: ch.Attempt, worker: ch.Worker})
	} else {
		end = max(end, r.segs[n-1].start)
	}
	top := telemetry.Span{
		TraceID: r.trace, ID: telemetry.SpanOf(r.id, r.first, telemetry.PhaseTask), Parent: r.parent, Name: r.name(),
		Start: r.segs[0].start, End: end, Attrs: append(r.attrs(), telemetry.AttrState.String(ch.State.String())), Links: r.links,
	}
	if ch.State != task.Finished {
		top.Err = errs.ErrTaskFailed
		if ch.State == task.Cancelled {
			top.Err = errs.ErrCancelled
		}
		if ch.Reason != nil {
			top.Err = ch.Reason
		}
	}
	out = append(out, top)
	ran := map[uint32]bool{}
	for i, s := range r.segs {
		to := end
		if i+1 < len(r.segs) {
			to = r.segs[i+1].start
		}
		if to == s.start && s.phase != telemetry.PhaseRun {
			continue
		}
		n := uint32(i)<<16 | r.first
		if s.phase == telemetry.PhaseRun && !ran[s.attempt] {
			n, ran[s.attempt] = s.attempt, true // the worker knows only this number
		}
		out = r.phase(out, top.ID, top.Attrs[0], s, n, to)
	}
	return out
}

// phase adds the span of a segment, and below a run those of the gets it was blocked in. It names its task; the
// parent span has everything else about the task.
func (r *record) phase(out []telemetry.Span, parent [8]byte, id attribute.KeyValue, s segment, n uint32, end int64) []telemetry.Span {
	sp := telemetry.Span{
		TraceID: r.trace, ID: telemetry.SpanOf(r.id, n, s.phase), Parent: parent, Name: s.phase.String(), Start: s.start, End: end,
		Attrs: append(make([]attribute.KeyValue, 0, 3), id, telemetry.AttrAttempt.Int64(int64(s.attempt))),
	}
	if s.worker != 0 {
		sp.Attrs = append(sp.Attrs, telemetry.AttrWorker.String(s.worker.String()))
	}
	if s.phase != telemetry.PhaseRun {
		return append(out, sp)
	}
	if s.err != nil {
		sp.Err = s.err
	}
	if s.attempt > r.first+1 {
		sp.Attrs = append(sp.Attrs, telemetry.AttrRetry.Int64(int64(s.attempt-r.first-1)))
	}
	out = append(out, sp)
	for _, bl := range r.blocked {
		from, to := max(bl.start, s.start), min(bl.end, end)
		if from >= to {
			continue // of another attempt
		}
		out = append(out, telemetry.Span{
			TraceID: r.trace, ID: telemetry.SpanOf(r.id, uint32(len(out))<<16|r.first, telemetry.PhaseBlocked), Parent: sp.ID,
			Name: telemetry.PhaseBlocked.String(), Start: from, End: to,
		})
	}
	return out
}

func (r *record) name() string {
	if r.opts.Label != "" {
		return r.opts.Label
	}
	return r.opts.Func
}
