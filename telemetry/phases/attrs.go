package phases

import (
	"go.opentelemetry.io/otel/attribute"

	"mobula/telemetry"
	"mobula/wire"
)

// attrs are the attributes of the whole task's span. The first one names the task.
func (r *record) attrs() []attribute.KeyValue {
	kv := make([]attribute.KeyValue, 0, 8)
	kv = append(kv, telemetry.AttrTask.String(r.id.String()), telemetry.AttrFunc.String(r.opts.Func),
		telemetry.AttrJob.Int64(int64(r.id.Job())))
	switch r.kind {
	case wire.TaskActorCreate:
		kv = append(kv, telemetry.AttrKind.String("actor-creation"))
	case wire.TaskActorCall:
		kv = append(kv, telemetry.AttrKind.String("actor-call"), telemetry.AttrActor.String(r.actor.String()))
	}
	if r.callsite != "" {
		kv = append(kv, telemetry.AttrCallsite.String(r.callsite))
	}
	if r.attempts > r.first+1 {
		kv = append(kv, telemetry.AttrAttempts.Int64(int64(r.attempts-r.first)))
	}
	if r.first > 0 {
		kv = append(kv, telemetry.AttrRestart.Bool(true))
	}
	return kv
}
