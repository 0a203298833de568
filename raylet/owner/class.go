package owner

import (
	"encoding/binary"
	"hash/fnv"

	"mobula/raylet/sched"
	"mobula/wire"
)

const (
	maxClassPtrs = 4096 // pointers remembered; more are looked up by their content
	maxClasses   = 1024 // above it, classes without tasks and leases are forgotten
)

// classTable finds a task's class: by the pointer of its options where it was seen, else by
// what the scheduler cares for.
type classTable struct {
	last  [2]classHit
	ptr   [2]map[*wire.TaskOptions]*classRec // by kind
	byKey map[string]*classRec
	byID  map[sched.Class]*classRec
}

type classHit struct {
	opts *wire.TaskOptions
	cl   *classRec
}

// number gives a class its number: a hash of its key, so that a rebuilt core gives the same
// and knows the leases that the scheduler tells it of.
func (t *classTable) number(key []byte) sched.Class {
	h := fnv.New32a()
	_, _ = h.Write(key)
	n := sched.Class(h.Sum32())
	for t.byID[n] != nil {
		n++
	}
	return n
}

func newClassTable() classTable {
	t := classTable{byKey: make(map[string]*classRec), byID: make(map[sched.Class]*classRec)}
	for i := range t.ptr {
		t.ptr[i] = make(map[*wire.TaskOptions]*classRec)
	}
	return t
}

// classOf gives the class of a task or an actor's creation.
func (c *Core) classOf(kind wire.TaskKind, opts *wire.TaskOptions) *classRec {
	hit := &c.classes.last[kind]
	if hit.opts == opts {
		return hit.cl
	}
	ptrs := c.classes.ptr[kind]
	k := ptrs[opts]
	if k == nil {
		k = c.classByKey(kind, opts)
		if len(ptrs) >= maxClassPtrs {
			clear(ptrs)
		}
		ptrs[opts] = k
	}
	*hit = classHit{opts, k}
	return k
}

func (c *Core) classByKey(kind wire.TaskKind, opts *wire.TaskOptions) *classRec {
	c.keyBuf = appendClassKey(c.keyBuf[:0], kind, opts)
	if k := c.classes.byKey[string(c.keyBuf)]; k != nil {
		return k
	}
	if len(c.classes.byID) >= maxClasses {
		c.forgetClasses()
	}
	k := &classRec{id: c.classes.number(c.keyBuf), key: string(c.keyBuf), kind: kind, opts: opts, solo: opts.Isolate}
	c.classes.byKey[k.key], c.classes.byID[k.id] = k, k
	return k
}

// classAgain gives the class to go on with in place of one that may have been forgotten since it was last used.
func (c *Core) classAgain(k *classRec) *classRec {
	if !k.forgotten {
		return k
	}
	return c.classByKey(k.kind, k.opts)
}

// soloClass gives the class of tasks that are to run in a process of their own, with at
// least this much memory for them.
func (c *Core) soloClass(k *classRec, memory uint64) *classRec {
	opts := *k.opts
	opts.Isolate = true
	if memory > 0 {
		opts.Resources = withMemory(opts.Resources, int64(memory))
	}
	return c.classByKey(k.kind, &opts)
}

// withMemory raises the memory in a sorted list of resources. A nil list is one CPU.
func withMemory(rs []wire.Resource, bytes int64) []wire.Resource {
	if rs == nil {
		rs = []wire.Resource{{Name: "CPU", Amount: 1000}}
	}
	out := make([]wire.Resource, 0, len(rs)+1)
	placed := false
	for _, r := range rs {
		if r.Name == "memory" {
			r.Amount, placed = max(r.Amount, bytes), true
		} else if r.Name > "memory" && !placed {
			out, placed = append(out, wire.Resource{Name: "memory", Amount: bytes}), true
		}
		out = append(out, r)
	}
	if !placed {
		out = append(out, wire.Resource{Name: "memory", Amount: bytes})
	}
	return out
}

// forgetClasses drops the classes that nothing uses.
func (c *Core) forgetClasses() {
	for id, k := range c.classes.byID {
		if k.live == 0 && k.ready.n == 0 && len(k.leases) == 0 && !k.wants && !k.dirty {
			k.forgotten = true
			delete(c.classes.byID, id)
			delete(c.classes.byKey, k.key)
		}
	}
	for kind := range c.classes.ptr {
		clear(c.classes.ptr[kind])
		c.classes.last[kind] = classHit{}
	}
}

func appendClassKey(b []byte, kind wire.TaskKind, o *wire.TaskOptions) []byte {
	b = append(b, byte(kind), bit(o.Isolate)|bit(o.Spread)<<1|bit(o.Resources == nil)<<2)
	b = binary.AppendUvarint(b, uint64(len(o.Process)))
	b = append(b, o.Process...)
	b = binary.AppendUvarint(b, uint64(len(o.Func)))
	b = append(b, o.Func...)
	for _, r := range o.Resources {
		b = binary.AppendUvarint(b, uint64(len(r.Name)))
		b = append(b, r.Name...)
		b = binary.AppendVarint(b, r.Amount)
	}
	return b
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
