package objectstore

import (
	"mobula/internal/ids"
	"mobula/objectstore/alloc"
)

// maxAhead bounds the objects that are noted for reading ahead.
const maxAhead = 4096

// readAhead notes objects that a task which runs soon will ask for. Those that are spilled are read while
// nobody asks for anything else, into memory that is free: so a worker does not wait for the disk
// between two tasks. Nothing is pinned or promised. What is read is a copy that goes when its memory is needed. What another job's process made
// is not read ahead: those who ask for it read it in a file of their own, and the maker's may have gone with its job.
func (c *Core) readAhead(want []ids.ObjectID) {
	for _, id := range want {
		if r, ok := c.objs[id]; ok && !r.o.resident && r.o.job == id.Job() && len(c.ahead) < maxAhead {
			c.ahead = append(c.ahead, id)
		}
	}
}

// pumpAhead starts such reads. One slot of the reads is left to those that somebody waits for, and a tenth of
// the store to creates.
func (c *Core) pumpAhead() {
	for len(c.ahead) > 0 && c.restores+1 < c.cfg.MaxRestores && !c.recovering && c.senior() == nil {
		id := c.ahead[0]
		c.ahead = c.ahead[1:]
		o := c.objs[id].o
		if o == nil || o.resident || o.restore != nil || o.gone {
			continue // it was freed, or somebody asked for it
		}
		most := c.forObjects()
		if c.room > 0 {
			most = min(most, c.room)
		}
		if c.alloc.Held()+o.footprint()+most/10 > most {
			c.ahead = nil // who needs them reads them
			return
		}
		b, ok := c.alloc.Alloc(alloc.Owner(o.job), o.size, true)
		if !ok {
			c.ahead = nil
			return
		}
		c.punchTaken() // of a slab: nothing was warm elsewhere
		o.restore = &demand{lane: laneArgs, need: o.size, o: o, block: b}
		c.settle(o)
		c.read(o.restore)
		c.counts.ReadAhead++
	}
}
