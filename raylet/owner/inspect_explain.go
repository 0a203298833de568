package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/owner/object"
	"mobula/raylet/sched"
	"mobula/wire"
)

// TaskWhy is what the owner knows of why a task is where it is.
type TaskWhy struct {
	TaskView
	Args       []ArgWhy // its reference arguments
	Class      sched.ClassKey
	Queued     int         // tasks of its class, or its actor, that wait for the same
	Ahead      int         // of these, before it; -1: more than looked at
	Leases     int         // that its class holds
	Infeasible *errs.Error // what the scheduler said of its class
	Of         *ActorView  // of a call or a creation
	Held       bool        // everything waits: the owner restarted and asks its clients what they hold
}

// ArgWhy is one argument.
type ArgWhy struct {
	ID    ids.ObjectID
	State object.State
}

const lookAhead = 10_000 // places of a queue that WhyTask looks at

// WhyTask explains a task. It costs as much as the task has arguments and up to 10,000 places of a queue.
func (c *Core) WhyTask(id ids.TaskID) (TaskWhy, bool) {
	t := c.tasks.task(id)
	if t == nil {
		return TaskWhy{}, false
	}
	w := TaskWhy{TaskView: t.view(), Held: c.recovering}
	if t.spec != nil {
		for i := range t.spec.Args {
			if ref := t.spec.Args[i].Ref; !ref.IsZero() {
				a := ArgWhy{ID: ref, State: object.Freed}
				if o := c.object(ref); o != nil {
					a.State = o.state
				}
				w.Args = append(w.Args, a)
			}
		}
	}
	if k := t.class; k != nil {
		if t.flags&taskIsolated != 0 && t.x.isolatedClass != nil {
			k = t.x.isolatedClass
		}
		w.Class, w.Leases, w.Infeasible = sched.ClassKey{Job: c.cfg.Job, Class: k.id}, len(k.leases), k.infeasible
	}
	if t.actor != nil {
		v := t.actor.real().view()
		w.Of = &v
	}
	if t.in != nil && t.in != &c.lineage.kept && t.in != &c.memory.waiting {
		w.Queued = t.in.n
		for p := t.prev; p != nil; p = p.prev {
			if w.Ahead++; w.Ahead > lookAhead {
				w.Ahead = -1
				break
			}
		}
	}
	return w, true
}

// ObjectWhy is what the owner knows of who keeps an object, or makes it.
type ObjectWhy struct {
	ObjectView
	Clients []ids.ClientID // with a handle, at most 100
	Makes   bool           // its task has not ended, or runs again
	Lineage int            // specs kept that would need it to run again
}

// WhyObject explains an object.
func (c *Core) WhyObject(id ids.ObjectID) (ObjectWhy, bool) {
	o := c.object(id)
	if o == nil {
		return ObjectWhy{}, false
	}
	w := ObjectWhy{ObjectView: c.objectView(o), Lineage: int(o.lineage)}
	if o.holder != nil {
		w.Clients = append(w.Clients, o.holder.id)
	}
	if o.more != nil {
		for _, cl := range *o.more {
			if len(w.Clients) == 100 {
				break
			}
			w.Clients = append(w.Clients, cl.id)
		}
	}
	w.Makes = o.state == object.Pending && o.rec != nil && !o.rec.state.Terminal()
	return w, true
}

// KindOf tells what an object came from: "return", "item" or "put".
func KindOf(v *ObjectView) string {
	switch {
	case v.ID.IsPut():
		return "put"
	case v.Task.Opts != nil && v.Task.Opts.NumReturns == wire.Streaming:
		return "item"
	}
	return "return"
}
