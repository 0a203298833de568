package actors

import "mobula/wire"

// Span is one message of a sampled trace, from its post to the end of its effects.
// Times are nanoseconds by the system's clock.
type Span struct {
	Kind, Name string            // of the component
	Message    string            // Go type of the event
	Trace      wire.TraceContext // the context it was posted with: the parent of this span
	Posted     int64
	Start, End int64
}

// PostTraced is Post for an event that belongs to a trace. Do sees the context with
// self.Trace.
func (r *Ref[E]) PostTraced(tc wire.TraceContext, ev E) error {
	mt := meta{tc: tc}
	if s := r.m.n.sys; s.onSpan != nil && tc.Sampled() {
		mt.posted = s.now()
	}
	return r.m.post(ev, &mt)
}

// Trace is the context of the message being stepped, zero if it came with none. It is
// valid in Do and OnPoison, on the component's goroutine.
func (r *Ref[E]) Trace() wire.TraceContext { return r.m.trace }

func (n *node) span(message string, mt *meta, begin int64) {
	defer n.sys.recovered("Config.OnSpan")
	n.sys.onSpan(Span{Kind: n.kind, Name: n.name, Message: message, Trace: mt.tc,
		Posted: mt.posted, Start: begin, End: n.sys.now()})
}
