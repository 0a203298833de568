package sched

import (
	"fmt"
	"strings"

	"mobula/wire"
)

// Explanation describes the state of a class.
type Explanation struct {
	Known    bool
	Backlog  int        // leases it still waits for
	Position int        // 1: next in turn among Waiting classes; 0: does not wait
	Waiting  int        // classes that wait, over all jobs
	Leases   int        // leases that it holds, in any state
	Starting int        // of Leases, those that wait for a worker process
	Missing  []Shortage // the resources that it lacks now
	Text     string     // all of it in one line
}

// Shortage is a resource of which too little is free.
type Shortage struct {
	Resource          string
	Asked, Free, Held int64 // as wire.Resource; Held is what the node has in all
}

// Explain says why a class waits. Unlike Step it costs the length of the queue.
func (c *Core) Explain(key ClassKey) Explanation {
	cl := c.find(key)
	if cl == nil {
		return Explanation{Text: "no task of this class waits and it holds no lease"}
	}
	e := Explanation{Known: true, Backlog: cl.backlog, Leases: len(cl.leases)}
	for _, l := range cl.leases {
		if l.state == Starting {
			e.Starting++
		}
	}
	for je := c.jobs.Front(); je != nil; je = je.Next() {
		for ce := je.Value.(*job).waiting.Front(); ce != nil; ce = ce.Next() {
			if e.Waiting++; ce.Value.(*class) == cl {
				e.Position = e.Waiting
			}
		}
	}
	for _, x := range cl.need {
		if free := c.res.free[x.r]; free < x.n {
			e.Missing = append(e.Missing, Shortage{c.res.names[x.r], x.n, free, c.res.total[x.r]})
		}
	}
	e.Text = c.explainText(cl, e)
	return e
}

func (c *Core) explainText(cl *class, e Explanation) string {
	var b strings.Builder
	name := funcName(cl.opts)
	switch {
	case cl.bad != nil:
		return cl.bad.Error()
	case c.resync.waits():
		fmt.Fprintf(&b, "%s: the scheduler restarted and waits for %d owners to say what they hold", name, len(c.resync.pending))
	case e.Position > 0:
		fmt.Fprintf(&b, "%s: number %d of %d waiting classes", name, e.Position, e.Waiting)
	default:
		fmt.Fprintf(&b, "%s: waits for no resources", name)
	}
	if e.Position > 0 {
		for _, m := range e.Missing {
			fmt.Fprintf(&b, "; asks %s %s, %s of %s free", Amount(m.Resource, m.Asked), m.Resource, Amount(m.Resource, max(m.Free, 0)), Amount(m.Resource, m.Held))
		}
		switch {
		case c.resuming.Len() > 0:
			fmt.Fprintf(&b, "; %d tasks that left a get are served first", c.resuming.Len())
		case c.paused && c.running > 0:
			b.WriteString("; new leases are paused for want of memory")
		case len(e.Missing) == 0 && c.head != nil && c.head != cl:
			fmt.Fprintf(&b, "; free resources are kept for %s", funcName(c.head.opts))
		}
	}
	fmt.Fprintf(&b, "; %d leases held", e.Leases-e.Starting)
	if e.Starting > 0 {
		fmt.Fprintf(&b, ", %d waiting for a worker process", e.Starting)
	}
	return b.String()
}

// Usage gives what the node has, what is free and how many leases there are, for status and metrics.
func (c *Core) Usage() (total, free []wire.Resource, leases int) {
	total, free = c.amounts(nil, nil)
	return total, free, len(c.leases)
}
