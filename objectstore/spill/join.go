package spill

import (
	"mobula/objectstore/spill/format"
)

// maxJoin is how much reads that are done as one may span: enough to be worth one request, little enough
// that a pool shares a burst of them.
const maxJoin = 1 << 20

// MaxParts is how many reads are done as one, at most: storage.Storage.ReadMany takes as many.
const MaxParts = 400

// join takes the reads queued behind r that go on where it ends.
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
