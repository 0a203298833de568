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
func (ls *leases) classOf(kind wire.TaskKind, opts *wire.TaskOptions) *classRec {
	hit := &ls.classes.last[kind]
	if hit.opts == opts {
		return hit.cl
	}
	ptrs := ls.classes.ptr[kind]
	k := ptrs[opts]
	if k == nil {
		k = ls.classByKey(kind, opts)
		if opts.Long() {
			return k
		}
		if len(ptrs) >= maxClassPtrs {
			clear(ptrs)
		}
		ptrs[opts] = k
	}
	*hit = classHit{opts, k}
	return k
}

func (ls *leases) classByKey(kind wire.TaskKind, opts *wire.TaskOptions) *classRec {
	ls.keyBuf = appendClassKey(ls.keyBuf[:0], kind, opts)
	if k := ls.classes.byKey[string(ls.keyBuf)]; k != nil {
		return k
	}
	if len(ls.classes.byID) >= maxClasses {
		ls.forgetClasses()
	}
	k := &classRec{id: ls.classes.number(ls.keyBuf), key: string(ls.keyBuf), kind: kind, opts: opts, isolated: opts.Isolate}
	ls.classes.byKey[k.key], ls.classes.byID[k.id] = k, k
	return k
}

// currentClass gives the class to go on with in place of one that may have been forgotten since it was last used.
func (ls *leases) currentClass(k *classRec) *classRec {
	if !k.forgotten {
		return k
	}
	return ls.classByKey(k.kind, k.opts)
}

// isolatedClass gives the class of tasks that are to run in a process of their own, with at
// least this much memory for them.
func (ls *leases) isolatedClass(k *classRec, memory uint64) *classRec {
	opts := *k.opts
	opts.Isolate = true
	if memory > 0 {
		opts.Resources = withMemory(opts.Resources, int64(memory))
	}
	return ls.classByKey(k.kind, &opts)
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
func (ls *leases) forgetClasses() {
	for id, k := range ls.classes.byID {
		if k.live == 0 && k.ready.n == 0 && len(k.leases) == 0 && !k.wantSent && !k.dirty {
			k.forgotten = true
			delete(ls.classes.byID, id)
			delete(ls.classes.byKey, k.key)
		}
	}
	for kind := range ls.classes.ptr {
		clear(ls.classes.ptr[kind])
		ls.classes.last[kind] = classHit{}
	}
}

// heaviestQueue gives the class whose tasks that wait for a lease have the most bytes of specs in memory, of those with tasks that were not looked at yet
// whether their specs can go, and how many classes have tasks that wait; nil: there is none.
func (ls *leases) heaviestQueue() (k *classRec, queues int) {
	for _, x := range ls.classes.byID {
		if x.ready.n == 0 {
			continue
		}
		queues++
		if x.ready.looked < x.ready.pushed && (k == nil || x.ready.bytes > k.ready.bytes || x.ready.bytes == k.ready.bytes && x.id < k.id) {
			k = x
		}
	}
	return k, queues
}

// appendClassKey writes what a class is by: every option that says where a task may run, and in which process.
func appendClassKey(b []byte, kind wire.TaskKind, o *wire.TaskOptions) []byte {
	b = append(b, byte(kind), bit(o.Isolate)|bit(o.Spread)<<1|bit(o.Resources == nil)<<2, byte(o.Affinity))
	if o.Affinity != wire.AffinityNone {
		b = binary.AppendUvarint(b, uint64(o.Node))
	}
	b = appendText(b, o.Process)
	b = appendText(b, o.Func)
	b = appendSelector(b, o.Labels)
	b = appendSelector(b, o.PreferLabels)
	for _, r := range o.Resources {
		b = appendText(b, r.Name)
		b = binary.AppendVarint(b, r.Amount)
	}
	return b
}

func appendSelector(b []byte, s wire.Selector) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	for _, m := range s {
		b = appendText(append(b, byte(m.Op)), m.Key)
		b = binary.AppendUvarint(b, uint64(len(m.Values)))
		for _, v := range m.Values {
			b = appendText(b, v)
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (ls *leases) touch(k *classRec) {
	if !k.dirty {
		k.dirty = true
		ls.dirtyClass = append(ls.dirtyClass, k)
	}
}
