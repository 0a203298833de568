package objectstore

import (
	"fmt"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// Stats is the state of the store in bytes and objects. Held is exactly what is allocated:
// Held = Sealed + Granted + Slack + Moving.
type Stats struct {
	Limit   uint64
	Index   uint64 // of Limit, what the index takes
	Backed  uint64 // with memory behind it
	Warm    uint64 // of that, free
	Held    uint64 // allocated, of Limit
	Sealed  uint64 // blocks of sealed objects
	Granted uint64 // blocks being written by clients
	Moving  uint64 // blocks waiting for memory, or being restored or drained
	Foreign uint64 // of Sealed: copies for readers of other jobs
	Slack   uint64 // unused parts of slabs
	Pinned  uint64 // of Sealed
	Cold    uint64 // of Sealed: can be spilled
	Copies  uint64 // of Sealed: has a spilled copy, can be evicted

	Args             uint64 // of running tasks
	FallbackBytes    uint64
	Spilled          uint64 // bytes in spill storage
	SpillGarbage     uint64 // bytes there of objects that are gone, in files that have others
	Data             uint64 // bytes of sealed objects, wherever they are
	Objects          int
	ObjectsInMemory  int
	ObjectsSpilled   int // only in spill storage
	ObjectsElsewhere int // of none of these: only on other nodes
	ObjectsPinned    int
	Grants           int
	WaitingCreates   int
	WaitingRestores  int
	WaitingArgs      int
	SpillsUnderWay   int
	RestoresUnderWay int
	Clients          int
	OldClients       int // of before a restart, not heard yet
	Counters
}

// Stats counts the store's state. It looks at every object.
func (c *Core) Stats() Stats {
	s := Stats{
		Limit: c.alloc.Limit(), Index: c.alloc.Limit() - c.objectLimit(), Backed: c.alloc.Backed(), Warm: c.alloc.Warm(), Held: c.alloc.Held(), Slack: c.alloc.Held() - c.alloc.Used(),
		Pinned: c.pinnedBytes, Cold: c.cold.bytes, Copies: c.second.bytes, Args: c.argBytes, FallbackBytes: c.fallbackBytes, SpillGarbage: c.files.garbage(),
		Grants: len(c.grants), WaitingCreates: len(c.waiting), WaitingArgs: c.argWait.Len(), SpillsUnderWay: c.spills,
		RestoresUnderWay: c.restores.underWay + c.restores.forNodes, Clients: len(c.clients.byID), OldClients: len(c.old), Counters: c.counts,
	}
	for _, g := range c.grants {
		s.Granted += g.block.Size
	}
	c.eachRestore(func(d *demand) {
		if d.stage == stageWaiting {
			s.WaitingRestores++
		}
	})
	for _, o := range c.all() {
		if _, copied := c.objects.allCopies[o]; copied {
			if o.resident && o.file == 0 {
				s.Sealed += o.block.Size
				s.Foreign += o.block.Size
			}
			continue
		}
		if !o.resident && !o.spilled && len(o.elsewhere) > 0 {
			s.ObjectsElsewhere++
			continue
		}
		s.Objects += max(1, o.live)
		s.Data += o.size
		if o.pinned() {
			s.ObjectsPinned++
		}
		if o.spilled {
			s.Spilled += o.size
		}
		switch {
		case o.resident:
			s.ObjectsInMemory++
			if o.file == 0 {
				s.Sealed += o.block.Size
			}
		default:
			s.ObjectsSpilled++
		}
	}
	s.Moving = s.Held - s.Slack - s.Sealed - s.Granted
	return s
}

// Counters are the core's own. Unlike Stats it looks at no object.
func (c *Core) Counters() Counters { return c.counts }

// Memory is how much of the segment is allocated, and how much has memory behind it. Unlike Stats it looks at no object.
func (c *Core) Memory() (held, backed uint64) { return c.alloc.Held(), c.alloc.Backed() }

// Info is one object as the command line shows it.
type Info struct {
	ID       ids.ObjectID
	Attempt  uint32
	Size     uint64
	State    string // "writing", "memory", "memory+spilled", "spilled", "elsewhere", "restoring", "fallback"
	Extent   wire.Extent
	Pins     uint32 // of clients and argument sets
	Freed    bool   // kept by pins alone
	Packed   bool   // shares a block with others
	Creating bool   // waits for room
}

// List gives at most limit objects of a job (0: all jobs), in the order of their ids, from
// the first id after the given one.
func (c *Core) List(job ids.JobID, after ids.ObjectID, limit int) []Info {
	var keys []ids.ObjectID
	want := func(id ids.ObjectID) {
		if (job == 0 || id.Job() == job) && (after.IsZero() || id.Compare(after) > 0) {
			keys = append(keys, id)
		}
	}
	for id := range c.objs {
		want(id)
	}
	for k := range c.grants {
		want(k.id)
	}
	for k := range c.waiting {
		want(k.id)
	}
	slices.SortFunc(keys, ids.ObjectID.Compare)
	keys = slices.Compact(keys)
	if limit > 0 && len(keys) > limit {
		keys = keys[:limit]
	}
	out := make([]Info, 0, len(keys))
	for _, id := range keys {
		out = append(out, c.Info(id))
	}
	return out
}

// Info is one object as List gives it; of one that the store does not have only the id is set.
func (c *Core) Info(id ids.ObjectID) Info {
	r, ok := c.objs[id]
	if !ok {
		for k, g := range c.grants {
			if k.id == id {
				return Info{ID: id, Attempt: k.attempt, Size: g.size, State: "writing", Extent: g.extent()}
			}
		}
		for k, d := range c.waiting {
			if k.id == id {
				return Info{ID: id, Attempt: k.attempt, Size: d.need, State: "waiting", Creating: true}
			}
		}
		return Info{ID: id}
	}
	o := r.o
	in := Info{ID: id, Attempt: o.attempt, Size: r.size(), Freed: o.gone, Packed: o.values != nil, Pins: uint32(o.argPins)}
	for _, p := range o.pins {
		if p.sub == r.sub {
			in.Pins += p.n
		}
	}
	switch {
	case o.restore != nil:
		in.State = "restoring"
	case !o.resident && !o.spilled:
		in.State = "elsewhere"
	case !o.resident:
		in.State = "spilled"
	case o.file != 0:
		in.State = "fallback"
	case o.spilled:
		in.State = "memory+spilled"
	default:
		in.State = "memory"
	}
	if o.resident {
		in.Extent = r.extent()
	}
	return in
}

// Why says in lines who keeps an object, or what it waits for.
func (c *Core) Why(id ids.ObjectID) []string {
	r, ok := c.objs[id]
	if !ok {
		in := c.Info(id)
		switch in.State {
		case "writing":
			g := c.grants[grantKey{id, in.Attempt}]
			return []string{fmt.Sprintf("being written by client %v, %d bytes granted", g.client, g.size)}
		case "waiting":
			d := c.waiting[grantKey{id, in.Attempt}]
			return []string{fmt.Sprintf("client %v waits to create it: %s", d.client, c.figures(d.need))}
		}
		return []string{"not in the store"}
	}
	o := r.o
	var out []string
	for _, p := range o.pins {
		if p.sub == r.sub {
			out = append(out, fmt.Sprintf("pinned %d times by client %v", p.n, p.client))
		}
	}
	for _, x := range c.sortedExports() {
		if x.r == r {
			out = append(out, fmt.Sprintf("read by node %d", x.To))
		}
	}
	out = append(out, c.tasksWith(o)...)
	if o.quarantine {
		for _, old := range c.OldClients() {
			out = append(out, fmt.Sprintf("kept until client %v (process %d) of before the restart says what it holds", old.Client, old.PID))
		}
	}
	if o.spilling {
		out = append(out, "being spilled")
	}
	if d := o.restore; d != nil {
		out = append(out, fmt.Sprintf("%d gets and %d arguments wait for its restore: %s", len(d.gets), len(d.sets), c.figures(d.need)))
	}
	if len(out) == 0 {
		out = append(out, "kept by its owner's references only")
	}
	return out
}

func (c *Core) tasksWith(o *object) []string {
	var out []string
	for t, l := range c.sets {
		for _, s := range l {
			if slices.ContainsFunc(s.objs, func(r ref) bool { return r.o == o }) {
				if s.admitted {
					out = append(out, fmt.Sprintf("argument of task %v attempt %d on client %v", t, s.req.Attempt, s.req.Worker))
				} else {
					out = append(out, fmt.Sprintf("argument of task %v attempt %d, which waits for room", t, s.req.Attempt))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
