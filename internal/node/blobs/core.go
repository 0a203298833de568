package blobs

import (
	"fmt"
	"slices"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Defaults.
const (
	ChunkSize = 256 << 10 // bytes: what one message of another node may have to wait behind
	Window    = 4         // chunks under way
	Limit     = 2 << 30   // bytes of the cache
)

// Config is what a Core is told. Zero values mean the defaults.
type Config struct {
	Limit uint64
	First uint64 // number of the first fetch, above those of the core before
	Kept  []Kept // what lies in the cache

	NameOf func(ids.Home) string // what a node is called in errors; nil: its home
}

// Kept is a blob of the cache.
type Kept struct {
	Hash Hash
	Size uint64
	Used int64       // when it was used last
	Jobs []ids.JobID // that use it now
}

// Core is the logic. It is not safe for concurrent use.
type Core struct {
	limit   uint64
	nameOf  func(ids.Home) string
	next    uint64 // number of the next fetch
	now     int64
	asking  []Want   // asked, and not yet answered
	fetches []*fetch // in the order in which they began
	turn    int      // which of them pulls next
	flying  int      // chunks under way, of all
	cache   map[Hash]*Kept
	out     []Effect
}

// New makes a core.
func New(cfg Config) *Core {
	c := &Core{limit: cfg.Limit, nameOf: cfg.NameOf, next: max(cfg.First, 1), cache: make(map[Hash]*Kept)}
	if c.limit == 0 {
		c.limit = Limit
	}
	if c.nameOf == nil {
		c.nameOf = ids.Home.String
	}
	for _, k := range cfg.Kept {
		k.Jobs = slices.Clone(k.Jobs)
		c.cache[k.Hash] = &k
	}
	return c
}

// Step takes one event and returns its effects. The slice is valid until the next Step.
func (c *Core) Step(now int64, ev Event) []Effect {
	clear(c.out)
	c.out = c.out[:0]
	c.now = max(now, c.now)
	switch ev := ev.(type) {
	case Want:
		c.want(ev)
	case Found:
		c.found(ev)
	case Looked:
		c.looked(ev)
	case Begun:
		c.begun(ev)
	case Chunk:
		c.chunk(ev)
	case Written:
		c.written(ev)
	case Stored:
		c.stored(ev)
	case Over:
		c.over(ev.Job)
	case NodeGone:
		c.nodeGone(ev.Node)
	default:
		panic(fmt.Sprintf("blobs: unknown event %T", ev)) // a fault of the program
	}
	c.pull()
	return c.out
}

func (c *Core) emit(e Effect) { c.out = append(c.out, e) }

// want asks the node for a key that is not wanted yet.
func (c *Core) want(w Want) {
	same := func(k Key) bool { return k == w.Key }
	if slices.ContainsFunc(c.asking, func(a Want) bool { return same(a.Key) }) || slices.ContainsFunc(c.fetches, func(f *fetch) bool { return slices.ContainsFunc(f.wants, func(a Want) bool { return same(a.Key) }) }) {
		return
	}
	c.asking = append(c.asking, w)
	c.emit(Ask{Node: w.From, Key: w.Key})
}

// found begins the fetch of a blob, or joins the one that there is.
func (c *Core) found(ev Found) {
	at := slices.IndexFunc(c.asking, func(a Want) bool { return a.Key == ev.Key && a.From == ev.Node })
	if at < 0 {
		return // it is not wanted any more
	}
	w := c.asking[at]
	c.asking = slices.Delete(c.asking, at, at+1)
	place := Place{Hash: ev.Hash}
	if ev.Key.Kind == Function {
		place = Place{Job: ev.Key.Job, Hash: ev.Key.Hash}
	}
	if ev.Err != nil {
		c.emit(Failed{Key: w.Key, Err: ev.Err})
		return
	}
	for _, f := range c.fetches {
		if f.place != place {
			continue
		}
		if f.size != ev.Size {
			c.emit(Failed{Key: w.Key, Err: errs.New(errs.CodeProtocol, "node %s says that blob %v has %d bytes, another node that it has %d", c.nameOf(ev.Node), ev.Hash, ev.Size, f.size)})
			return
		}
		f.wants = append(f.wants, w)
		return
	}
	f := &fetch{number: c.next, place: place, size: ev.Size, wants: []Want{w}, flying: make(map[uint64]flight)}
	c.next++
	c.fetches = append(c.fetches, f)
	c.emit(Look{Fetch: f.number, Place: place})
}

// over forgets a job: its wants end, and it uses nothing any more.
func (c *Core) over(job ids.JobID) {
	c.end(func(w Want) bool { return w.Key.Job == job }, errs.New(errs.CodeOwnerDied, "job %v is over", job))
	for _, k := range c.cache {
		if at := slices.Index(k.Jobs, job); at >= 0 {
			k.Jobs = slices.Delete(k.Jobs, at, at+1)
			k.Used = c.now
		}
	}
}

func (c *Core) nodeGone(node ids.Home) {
	c.end(func(w Want) bool { return w.From == node }, errs.New(errs.CodeWorkerCrashed, "node %s is gone", c.nameOf(node)))
}

// end fails wants. A fetch goes on for those that are left of it.
func (c *Core) end(which func(Want) bool, err *errs.Error) {
	c.asking = slices.DeleteFunc(c.asking, func(w Want) bool {
		if which(w) {
			c.emit(Failed{Key: w.Key, Err: err})
		}
		return which(w)
	})
	for _, f := range slices.Clone(c.fetches) {
		c.leave(f, which, err)
	}
}
