package objectstore

import (
	"fmt"

	"mobula/objectstore/alloc"
	"mobula/objectstore/spill/format"
)

// Validate counts everything anew, and gives the first disagreement with what the core keeps as sums. It looks at every object: for tests and
// simulations, between two steps.
func (c *Core) Validate() error {
	if c.alloc.Used() > c.alloc.Limit() {
		return fmt.Errorf("%d bytes used of a limit of %d", c.alloc.Used(), c.alloc.Limit())
	}
	var used, pinned, grants, puts, viewed, files, spilling, spillingFiles, arg, live, garbage, sparse uint64
	for _, g := range c.grants {
		grants += g.footprint()
		if g.task.IsZero() {
			puts += g.size
		}
		if g.file != 0 {
			files += g.size
		} else {
			used += g.block.Size
		}
	}
	listed := 0
	for _, o := range c.all() {
		if o.resident {
			if o.file != 0 {
				files += o.size
			} else {
				used += o.block.Size
			}
		}
		if o.pinned() && o.resident && o.file == 0 {
			pinned += o.block.Size
		}
		if o.spilling {
			if o.file != 0 {
				spillingFiles += o.footprint()
			} else {
				spilling += o.block.Size
			}
		}
		if len(o.pins) > 0 {
			viewed += o.size
		}
		if o.argActive > 0 {
			arg += o.argCharged
		}
		if o.list != nil {
			listed++
			if o.pinned() || o.spilling || !o.resident || o.gone && len(o.copies) == 0 {
				return fmt.Errorf("object %v is listed as free to go and is not", o.id)
			}
		} else if o.resident && !o.pinned() && !o.spilling && (o.file == 0 || !o.spilled && o.of == nil && len(o.elsewhere) == 0 && !o.gone) {
			return fmt.Errorf("object %v is kept by nothing and not listed", o.id)
		}
		if o.spilled {
			live += format.Footprint(o.loc.Size)
			if f := c.files.byKey[o.loc.Key()]; f == nil || o.inFile >= len(f.objs) || f.objs[o.inFile] != o {
				return fmt.Errorf("object %v lies in a spill file that does not know it", o.id)
			}
		}
		if o.of != nil && (o.of.copies[o.job] != o || o.of.dead || o.spilled || !o.resident && o.restore == nil) {
			return fmt.Errorf("copy %v for job %v is of nothing", o.id, o.job)
		}
		if !o.resident && !o.spilled && o.of == nil && len(o.elsewhere) == 0 && o.restore == nil && (!o.gone || len(o.copies) == 0 && o.filling == nil) {
			return fmt.Errorf("object %v is nowhere", o.id)
		}
		if o.gone && len(o.copies) == 0 && !o.pinned() && !o.spilling && o.restore == nil && !o.draining && o.filling == nil {
			return fmt.Errorf("object %v is gone and still here", o.id)
		}
	}
	for _, f := range c.files.byKey {
		garbage += f.garbage()
		sparse += f.worth()
	}
	for _, j := range c.jobs {
		switch j := j.(type) {
		case *demand:
			if j.stage == stageFallback || j.file != 0 || (j.cancelled && j.block.Size == 0) {
				files += j.need
			} else {
				used += j.block.Size
			}
		case *reservation:
			if j.d != nil {
				used += j.d.block.Size
			}
		}
	}
	for _, d := range c.inFlightReads {
		used += d.block.Size
	}
	exports := make(map[*object]uint32)
	for _, x := range c.exports {
		exports[x.r.o]++
	}
	for o, n := range exports {
		if o.exports != n || o.dead {
			return fmt.Errorf("object %v is pinned by other nodes %d times, and they have %d pins", o.id, o.exports, n)
		}
	}
	active, counted := 0, 0
	for _, l := range c.sets {
		for _, s := range l {
			if s.admitted && !s.idle {
				active++
			}
		}
	}
	for _, n := range c.creating {
		counted += n
	}
	waiting := 0
	for _, d := range c.waiting {
		if !d.task.IsZero() {
			waiting++
		}
	}
	for _, x := range []struct {
		what      string
		got, want uint64
	}{
		{"used", c.alloc.Used(), used}, {"pinned", c.pinnedBytes, pinned}, {"granted", c.grantBytes, grants}, {"granted to no task", c.putBytes, puts}, {"viewed", c.viewedBytes, viewed},
		{"in fallback files", c.fallbackBytes, files}, {"being spilled", c.spillingBytes, spilling}, {"being spilled from files", c.spillingFiles, spillingFiles}, {"arguments", c.argBytes, arg},
		{"active sets", uint64(c.activeSets), uint64(active)}, {"listed", uint64(c.cold.n + c.second.n + c.outside.n), uint64(listed)},
		{"live in spill files", c.files.live, live}, {"garbage in spill files", c.files.garbage(), garbage}, {"garbage in sparse spill files", c.files.sparse, sparse},
		{"creating", uint64(counted), uint64(waiting)},
	} {
		if x.got != x.want {
			return fmt.Errorf("%s: the core says %d, it is %d", x.what, x.got, x.want)
		}
	}
	if owed := c.alloc.Limit() - c.objectLimit(); c.alloc.Withheld() != owed && c.reserving == 0 && (c.alloc.Withheld() > owed || c.alloc.Largest() >= alloc.Page) {
		return fmt.Errorf("the index takes %d bytes of the limit, %d are withheld and %d free", owed, c.alloc.Withheld(), c.alloc.Largest())
	}
	if s := c.Stats(); s.Held != s.Sealed+s.Granted+s.Slack+s.Moving || s.Held > s.Limit {
		return fmt.Errorf("stats do not add up: %+v", s)
	}
	return nil
}
