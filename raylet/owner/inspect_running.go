package owner

import (
	"mobula/internal/ids"
	"mobula/wire"
)

// Running is a task that a worker has.
type Running struct {
	Task, Parent ids.TaskID
	Func         string
	Worker       ids.ClientID
	Since        int64 // Unix ns; of its state
	Retriable    bool
}

// Running lists the tasks that lie at the head of their leases: those that run or wait in
// a get, not those pushed ahead. An actor that has no call is listed by its creation: its worker is not
// idle, since the actor would be lost with it.
func (c *Core) Running() []Running {
	var out []Running
	for _, l := range c.leases.byID {
		t := l.lane.head()
		if t == nil && l.actor != nil {
			t = l.actor.rec
		}
		if t == nil || t.spec == nil {
			continue
		}
		o := t.spec.Opts
		out = append(out, Running{
			Task: t.id(), Parent: t.spec.Parent, Func: o.Func, Worker: l.worker.id, Since: t.since,
			Retriable: t.spec.Kind == wire.TaskNormal && (o.MaxRetries < 0 || t.tries < uint32(o.MaxRetries)),
		})
	}
	return out
}
