package spill

import (
	"mobula/objectstore/spill/format"
	"mobula/objectstore/spill/storage"
)

// maxJoin is how much reads that are done as one may span: enough to be worth one request, little enough
// that a pool shares a burst of them.
const maxJoin = 1 << 20

// join takes the reads queued behind r that go on where it ends.
func (c *core) join(r request) (with []uint64) {
	end := r.off + r.size
	for c.queue[read].Len() > 0 && len(with)+1 < storage.MaxParts {
		n := c.queue[read].Front()
		if n.file != r.file || n.off < end || n.off-end >= 2*format.Page || n.off+n.size-r.off > maxJoin {
			break
		}
		c.queue[read].Pop()
		with = append(with, n.id)
		end = n.off + n.size
	}
	return with
}
