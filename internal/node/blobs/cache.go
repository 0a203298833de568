package blobs

import (
	"bytes"
	"cmp"
	"slices"

	"mobula/internal/errs"
)

// keep notes that a blob lies in the cache, and whose it is.
func (c *Core) keep(f *fetch) {
	k := c.cache[f.place.Hash]
	if k == nil {
		k = &Kept{Hash: f.place.Hash, Size: f.size}
		c.cache[k.Hash] = k
	}
	k.Used = c.now
	for _, w := range f.wants {
		if !slices.Contains(k.Jobs, w.Key.Job) {
			k.Jobs = append(k.Jobs, w.Key.Job)
		}
	}
}

// makeRoom removes what no job uses, longest unused first, until a blob fits beside what is kept and what is on its way. One that is not for the cache must fit alone.
func (c *Core) makeRoom(f *fetch) *errs.Error {
	if f.size > c.limit {
		return errs.New(errs.CodeOutOfDisk, "%v of %d bytes: a node takes at most %d", f.wants[0].Key.Kind, f.size, c.limit)
	}
	if f.place.Job != 0 {
		return nil
	}
	var held uint64
	var unused []*Kept
	for _, k := range c.cache {
		held += k.Size
		if len(k.Jobs) == 0 && !c.awaited(k.Hash) {
			unused = append(unused, k)
		}
	}
	for _, o := range c.fetches {
		if o.room && o.place.Job == 0 {
			held += o.size
		}
	}
	slices.SortFunc(unused, func(a, b *Kept) int { return cmp.Or(cmp.Compare(a.Used, b.Used), bytes.Compare(a.Hash[:], b.Hash[:])) })
	for held+f.size > c.limit && len(unused) > 0 {
		k := unused[0]
		unused = unused[1:]
		held -= k.Size
		delete(c.cache, k.Hash)
		c.emit(Remove{Hash: k.Hash})
	}
	if held+f.size > c.limit {
		return errs.New(errs.CodeOutOfDisk, "the cache of executables and modules has room for %d bytes: jobs that run here use %d, and %d more do not fit", c.limit, held, f.size)
	}
	return nil
}

// awaited tells whether a blob of the cache is being looked at for somebody.
func (c *Core) awaited(h Hash) bool {
	return slices.ContainsFunc(c.fetches, func(f *fetch) bool { return f.place == Place{Hash: h} })
}
