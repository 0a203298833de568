package telemetry

import "go.opentelemetry.io/otel/attribute"

// Span is a finished span of a trace. Times are Unix nanoseconds.
type Span struct {
	TraceID    [16]byte
	ID, Parent [8]byte // Parent is zero for a root
	Name       string
	Start, End int64
	Attrs      []attribute.KeyValue
	Links      []Link
	Events     []Event
	Err        error // why the covered work failed, or nil
}

// Event is a moment of a span.
type Event struct {
	Name  string
	At    int64
	Attrs []attribute.KeyValue
}

// Link names a span that another one depends on without being its child: that of the task that made an argument.
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
	AttrRetry     = attribute.Key("mobula.retry")   // on a run: the number of the retry
	AttrRestart   = attribute.Key("mobula.restart") // on a task that had ended: an actor that restarts, or a result that is made again
	AttrWorker    = attribute.Key("mobula.worker")
	AttrActor     = attribute.Key("mobula.actor.id")
	AttrCallsite  = attribute.Key("mobula.callsite")
	AttrComponent = attribute.Key("mobula.component")
	AttrBytes     = attribute.Key("mobula.bytes")
	AttrObjects   = attribute.Key("mobula.objects")
	AttrRestarts  = attribute.Key("mobula.restarts")
)
