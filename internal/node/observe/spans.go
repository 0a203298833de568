package observe

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/steady"
	storeshell "mobula/objectstore/shell"
	"mobula/objectstore/spill"
	"mobula/raylet/owner"
	"mobula/telemetry"
	"mobula/telemetry/export"
	"mobula/telemetry/phases"
)

const (
	maxSpanQueue  = 1 << 14               // transitions, and spans, not yet worked on
	spanBatch     = 512                   // of these that are worked on at once: a quarter of the exporter's queue, by default
	spanGather    = 50 * time.Millisecond // the longest that a batch may take to gather
	spanFlushTime = 5 * time.Second
)

// spanner builds spans beside the actors and gives them to the exporter. It lets a batch gather first: to wake up for
// every transition of a few sampled tasks costs more than the work on them.
type spanner struct {
	exp     export.SpanExporter
	wake    chan struct{} // there is something
	batch   chan struct{} // there is a batch
	dropped atomic.Uint64 // before the exporter had them

	mu      sync.Mutex
	changes []owner.Transition // guarded by mu
	spans   []telemetry.Span   // guarded by mu
}

func (o *Observer) startSpanner(exp export.SpanExporter) {
	sp := &spanner{exp: exp, wake: make(chan struct{}, 1), batch: make(chan struct{}, 1)}
	o.spans.Store(sp)
	o.cfg.Go(func() {
		sp.run(o.cfg.Life)
		ctx, cancel := context.WithTimeout(context.Background(), spanFlushTime)
		defer cancel()
		if err := exp.Shutdown(ctx); err != nil {
			o.log.Warn("the last spans could not be exported", "err", err)
		}
	})
}

// task queues a transition of a sampled task. Its Times are not ours to keep.
func (sp *spanner) task(ch *owner.Transition) {
	c := *ch
	if ch.Times != nil {
		times := *ch.Times
		c.Times = &times
	}
	sp.mu.Lock()
	if len(sp.changes) < maxSpanQueue {
		sp.changes = append(sp.changes, c)
	} else {
		sp.dropped.Add(1)
	}
	sp.awake()
	sp.mu.Unlock()
}

// span queues a span of the node's own.
func (sp *spanner) span(s telemetry.Span) {
	_, _ = rand.Read(s.TraceID[:]) // never fails
	_, _ = rand.Read(s.ID[:])
	sp.queue(s)
}

// queue takes a span if there is room, else counts it as dropped.
func (sp *spanner) queue(s telemetry.Span) bool {
	sp.mu.Lock()
	room := len(sp.spans) < maxSpanQueue
	if room {
		sp.spans = append(sp.spans, s)
	} else {
		sp.dropped.Add(1)
	}
	sp.awake()
	sp.mu.Unlock()
	return room
}

// awake tells run of what waits now. The spanner's mu is held.
func (sp *spanner) awake() {
	signal := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		default:
		}
	}
	n := len(sp.changes) + len(sp.spans)
	if n == 1 {
		signal(sp.wake)
	}
	if n%spanBatch == 0 {
		signal(sp.batch)
	}
}

// gathered waits for the first of a batch, and then until the batch is full or spanGather is over. False: ctx has ended.
func (sp *spanner) gathered(ctx context.Context) bool {
	select {
	case <-sp.wake:
	case <-ctx.Done():
		return false
	}
	t := time.NewTimer(spanGather)
	defer t.Stop()
	select {
	case <-sp.batch:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// run works until ctx ends, and then what is left.
func (sp *spanner) run(ctx context.Context) {
	b := phases.New(0)
	var changes []owner.Transition
	var spans []telemetry.Span
	for more := true; more; {
		more = sp.gathered(ctx)
		before := b.Dropped()
		sp.mu.Lock()
		changes, sp.changes = sp.changes, changes[:0]
		spans, sp.spans = sp.spans, spans[:0]
		sp.mu.Unlock()
		for i := range changes {
			for _, s := range b.Step(&changes[i]) {
				sp.exp.Emit(&s)
			}
		}
		for i := range spans {
			sp.exp.Emit(&spans[i])
		}
		clear(changes)
		clear(spans)
		sp.dropped.Add(b.Dropped() - before)
	}
}

// restart makes the span of a component's restart, from its panic to its new core.
func (sp *spanner) restart(begin, end actors.Event) {
	err := begin.Err
	if end.Kind != actors.EventRestarted {
		err = errors.Join(err, end.Err)
	}
	sp.span(telemetry.Span{Name: "restart " + begin.Name, Start: begin.Time, End: max(end.Time, begin.Time), Err: err,
		Attrs: []attribute.KeyValue{telemetry.AttrComponent.String(begin.Path), telemetry.AttrRestarts.Int(end.Restarts)}})
}

// seenSpiller makes spans of what the spiller does.
type seenSpiller struct {
	storeshell.Spiller
	spans *atomic.Pointer[spanner]
	clock steady.Clock
}

// Seen lets the store's spills and restores be traced.
func (o *Observer) Seen(s storeshell.Spiller) storeshell.Spiller {
	return seenSpiller{s, &o.spans, o.cfg.Clock}
}

// Write is a spill.
func (s seenSpiller) Write(items []spill.Item, done func([]spill.Location, error)) {
	sp := s.spans.Load()
	if sp == nil {
		s.Spiller.Write(items, done)
		return
	}
	begin, bytes, objects := s.clock.Now(), 0, len(items)
	for i := range items {
		bytes += len(items[i].Data)
	}
	s.Spiller.Write(items, func(locs []spill.Location, err error) {
		sp.move("spill", begin, s.clock.Now(), bytes, objects, err)
		done(locs, err)
	})
}

// Copy is a compaction.
func (s seenSpiller) Copy(objs []spill.Copy, done func([]spill.Location, error)) {
	sp := s.spans.Load()
	if sp == nil {
		s.Spiller.Copy(objs, done)
		return
	}
	begin, bytes, objects := s.clock.Now(), 0, len(objs)
	for i := range objs {
		bytes += int(objs[i].From.Size)
	}
	s.Spiller.Copy(objs, func(locs []spill.Location, err error) {
		sp.move("compact", begin, s.clock.Now(), bytes, objects, err)
		done(locs, err)
	})
}

// Read is a restore.
func (s seenSpiller) Read(loc spill.Location, dst []byte, done func(error)) {
	sp := s.spans.Load()
	if sp == nil {
		s.Spiller.Read(loc, dst, done)
		return
	}
	begin := s.clock.Now()
	s.Spiller.Read(loc, dst, func(err error) {
		sp.move("restore", begin, s.clock.Now(), len(dst), 1, err)
		done(err)
	})
}

func (sp *spanner) move(name string, begin, end int64, bytes, objects int, err error) {
	if errors.Is(err, errs.ErrShutdown) {
		return // given up, not failed
	}
	sp.span(telemetry.Span{Name: name, Start: begin, End: end, Err: err,
		Attrs: []attribute.KeyValue{telemetry.AttrBytes.Int(bytes), telemetry.AttrObjects.Int(objects)}})
}
