package owner

import (
	"fmt"

	"mobula/internal/ids"
)

// validateRecycled checks that nothing points at the records that are to be used again.
func (c *Core) validateRecycled(v *recount) error {
	free := make(map[*taskRec]bool, len(c.tasksFree))
	for _, t := range c.tasksFree {
		if free[t] {
			return fmt.Errorf("a record is to be used again twice")
		}
		free[t] = true
		if !t.ret0.id.IsZero() || t.spec != nil || t.in != nil || t.state != 0 {
			return fmt.Errorf("the record of task %v is to be used again and not empty", t.id())
		}
	}
	points := func(where string, o *objRec) error {
		for t := range free {
			if &t.ret0 == o {
				return fmt.Errorf("a record that is to be used again is in %s", where)
			}
		}
		return nil
	}
	if len(free) == 0 {
		return nil
	}
	for t := range v.onLane {
		if free[t] {
			return fmt.Errorf("a record that is to be used again is on a lane")
		}
	}
	for _, os := range [][]*objRec{c.recountQueue, c.budget.cold, c.budget.asked} {
		for _, o := range os {
			if err := points("a list of objects", o); err != nil {
				return err
			}
		}
	}
	for _, f := range c.fetches {
		if free[f.task] {
			return fmt.Errorf("a record that is to be used again waits for its spec")
		}
		if err := points("a fetch", f.obj); err != nil {
			return err
		}
	}
	for _, t := range c.timers.All() {
		if free[t.task] {
			return fmt.Errorf("a record that is to be used again has a timer")
		}
	}
	var stale error
	c.eachObject(func(o *objRec) {
		if o.waits == nil {
			return
		}
		for _, w := range o.waits.tasks {
			if free[w.t] && w.gen > w.t.gen {
				stale = fmt.Errorf("a record that is to be used again will count as waiting for %v", o.id)
			}
		}
	})
	return stale
}

// all is a table of tasks as a map.
func (t *table) all() map[ids.TaskID]*taskRec {
	out := make(map[ids.TaskID]*taskRec, t.n)
	t.each(func(o *objRec) { out[o.id.Task] = o.rec })
	return out
}
