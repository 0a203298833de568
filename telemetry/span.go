package telemetry

import "go.opentelemetry.io/otel/attribute"

// Span is a part of a trace that is over. Times are Unix nanoseconds.
type Span struct {
	TraceID    [16]byte
	ID, Parent [8]byte // Parent is zero for a root
	Name       string
	Start, End int64
	Attrs      []attribute.KeyValue
	Links      []Link
	Events     []Event
	Err        error // nil unless what it covers failed
}

// Event is a moment of a span.
type Event struct {
	Name  string
	At    int64
	Attrs []attribute.KeyValue
}

// Link names a span that another one depends on and is not below: that of the task that made an argument.
type Link struct {
	TraceID [16]byte
	ID      [8]byte
}

// The attributes of spans.
const (
	AttrTask      = attribute.Key("mobula.task.id")
	AttrFunc      = attribute.Key("mobula.function")
	AttrKind      = attribute.Key("mobula.task.kind")
	AttrState     = attribute.Key("mobula.task.state")
	AttrJob       = attribute.Key("mobula.job")
	AttrAttempt   = attribute.Key("mobula.attempt")
	AttrAttempts  = attribute.Key("mobula.attempts")
	AttrRetry     = attribute.Key("mobula.retry")   // of a run: the how manieth retry it is
	AttrRestart   = attribute.Key("mobula.restart") // of a task that had ended: an actor that is made anew, a result that is
	AttrWorker    = attribute.Key("mobula.worker")
	AttrActor     = attribute.Key("mobula.actor.id")
	AttrCallsite  = attribute.Key("mobula.callsite")
	AttrComponent = attribute.Key("mobula.component")
	AttrBytes     = attribute.Key("mobula.bytes")
	AttrObjects   = attribute.Key("mobula.objects")
	AttrRestarts  = attribute.Key("mobula.restarts")
)
