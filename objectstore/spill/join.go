package spill

import (
	"mobula/objectstore/spill/format"
)

// maxJoin is how many bytes joined reads may span: enough to be worth one request, few enough that a burst of
// reads is shared out in the pool.
const maxJoin = 1 << 20

// MaxParts is how many reads are joined at most, as many as storage.Storage.ReadMany takes.
const MaxParts = 400

// join takes the reads queued after r that continue where it ends.
func (c *Core) join(r Request) (with []uint64) {
	end := r.Off + r.Size
	for c.queue[Read].Len() > 0 && len(with)+1 < MaxParts {
		n := c.queue[Read].Front()
		if n.File != r.File || n.Off < end || n.Off-end >= 2*format.Page || n.Off+n.Size-r.Off > maxJoin {
			break
		}
		c.queue[Read].Pop()
		with = append(with, n.ID)
		end = n.Off + n.Size
	}
	return with
}
