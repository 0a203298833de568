package state

// MaxSpans is how many spans one request may have.
const MaxSpans = 1024

// SpansRequest has a program's own spans, which the node exports with those of its tasks. So a worker that ends or is killed
// has nothing left to send.
type SpansRequest struct {
	Spans []Span `json:"spans"`
}

// Shift adds a difference of clocks to all times.
func (r *SpansRequest) Shift(by int64) {
	for i := range r.Spans {
		s := &r.Spans[i]
		s.Start, s.End = s.Start+by, s.End+by
		for k := range s.Events {
			s.Events[k].At += by
		}
	}
}

// Span is a finished span. Ids are as in OpenTelemetry, times are Unix nanoseconds.
type Span struct {
	Trace  []byte         `json:"trace"`
	ID     []byte         `json:"id"`
	Parent []byte         `json:"parent,omitempty"`
	Name   string         `json:"name"`
	Start  int64          `json:"start"`
	End    int64          `json:"end"`
	Attrs  map[string]any `json:"attrs,omitempty"` // texts, numbers, booleans
	Error  string         `json:"error,omitempty"` // why it failed
	Events []SpanEvent    `json:"events,omitempty"`
	Links  []SpanLink     `json:"links,omitempty"`
}

// SpanEvent is a moment of a span.
type SpanEvent struct {
	Name  string         `json:"name"`
	At    int64          `json:"at"`
	Attrs map[string]any `json:"attrs,omitempty"`
}

// SpanLink names another span.
type SpanLink struct {
	Trace []byte `json:"trace"`
	ID    []byte `json:"id"`
}

// SpansReply says what happened to the spans.
type SpansReply struct {
	Exported bool `json:"exported"` // false: the node has no exporter and needs no spans
	Dropped  int  `json:"dropped"`  // because the queue was full
}
