package blobs

import (
	"errors"
	"reflect"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

const (
	home  ids.Home = 1
	other ids.Home = 2
)

var (
	exe7 = Key{Job: ids.JobID(home.ID(7)), Kind: Executable}
	exe8 = Key{Job: ids.JobID(home.ID(8)), Kind: Executable}
	exe9 = Key{Job: ids.JobID(other.ID(9)), Kind: Executable}
)

// step runs an event and compares what it leads to.
func step(t *testing.T, c *Core, ev Event, want ...Effect) {
	t.Helper()
	got := append([]Effect(nil), c.Step(0, ev)...)
	if len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v leads to\n%+v\nwant\n%+v", ev, got, want)
	}
	c.validate(t)
}

func pull(node ids.Home, k Key, h Hash, chunk int, size uint64) Pull {
	return Pull{Node: node, Key: k, Hash: h, Offset: uint64(chunk) * ChunkSize, Size: size}
}

func came(p Pull) Chunk {
	return Chunk{Node: p.Node, Key: p.Key, Hash: p.Hash, Offset: p.Offset, Data: make([]byte, p.Size)}
}

// A blob of five chunks and a bit is fetched, four chunks at a time; a second job that wants it waits for the same fetch, and a third finds it here.
func TestABlobIsFetchedOnce(t *testing.T) {
	c, h := New(Config{}), Hash{1}
	const size = 5*ChunkSize + 10
	step(t, c, Want{Key: exe7, From: home}, Ask{home, exe7})
	step(t, c, Want{Key: exe7, From: home})
	step(t, c, Found{Node: home, Key: exe7, Hash: h, Size: size}, Look{1, Place{Hash: h}})
	step(t, c, Looked{Fetch: 1}, Begin{1, Place{Hash: h}, size})
	step(t, c, Want{Key: exe8, From: home}, Ask{home, exe8})
	step(t, c, Found{Node: home, Key: exe8, Hash: h, Size: size})
	var way []Pull
	var all []Effect
	for i := range 4 {
		way = append(way, pull(home, exe7, h, i, ChunkSize))
		all = append(all, way[i])
	}
	step(t, c, Begun{Fetch: 1}, all...)
	step(t, c, came(way[1]), Write{1, way[1].Offset, make([]byte, ChunkSize)})
	step(t, c, came(way[1])) // nobody asked for it twice
	step(t, c, Written{Fetch: 1, Offset: way[1].Offset}, pull(home, exe7, h, 4, ChunkSize))
	for _, p := range []Pull{way[0], way[2], way[3], pull(home, exe7, h, 4, ChunkSize), pull(home, exe7, h, 5, 10)} {
		step(t, c, came(p), Write{1, p.Offset, make([]byte, p.Size)})
		switch ev := (Written{Fetch: 1, Offset: p.Offset}); {
		case p.Offset == 0:
			step(t, c, ev, pull(home, exe7, h, 5, 10))
		case p.Size == 10:
			step(t, c, ev, Store{1})
		default:
			step(t, c, ev)
		}
	}
	step(t, c, Stored{Fetch: 1}, Have{exe7, Place{Hash: h}}, Have{exe8, Place{Hash: h}})
	step(t, c, Want{Key: exe9, From: other}, Ask{other, exe9})
	step(t, c, Found{Node: other, Key: exe9, Hash: h, Size: size}, Look{2, Place{Hash: h}})
	step(t, c, Looked{Fetch: 2, Have: true}, Have{exe9, Place{Hash: h}})
}

// fails checks that an event fails some wants with an error of a kind, and gives the other effects.
func fails(t *testing.T, c *Core, ev Event, kind error, keys ...Key) (rest []Effect) {
	t.Helper()
	for _, e := range c.Step(0, ev) {
		f, ok := e.(Failed)
		if !ok {
			rest = append(rest, e)
			continue
		}
		if len(keys) == 0 || f.Key != keys[0] || !errors.Is(f.Err, kind) {
			t.Fatalf("%+v fails %+v with %v, want %+v with %v", ev, f.Key, f.Err, keys, kind)
		}
		keys = keys[1:]
	}
	if len(keys) > 0 {
		t.Fatalf("%+v does not fail %+v", ev, keys)
	}
	c.validate(t)
	return rest
}

// When the node that sends is gone, the fetch goes on from another one that has the blob, with the chunks that have not come.
func TestAnotherNodeGoesOn(t *testing.T) {
	c, h := New(Config{}), Hash{1}
	c.Step(0, Want{Key: exe7, From: home})
	c.Step(0, Want{Key: exe9, From: other})
	c.Step(0, Found{Node: home, Key: exe7, Hash: h, Size: 3 * ChunkSize})
	c.Step(0, Found{Node: other, Key: exe9, Hash: h, Size: 3 * ChunkSize})
	c.Step(0, Looked{Fetch: 1})
	c.Step(0, Begun{Fetch: 1})
	c.Step(0, came(pull(home, exe7, h, 1, ChunkSize)))
	rest := fails(t, c, NodeGone{home}, errs.ErrWorkerCrashed, exe7)
	if want := []Effect{pull(other, exe9, h, 2, ChunkSize), pull(other, exe9, h, 0, ChunkSize)}; !reflect.DeepEqual(rest, want) {
		t.Fatalf("it goes on with %+v, want %+v", rest, want)
	}
	step(t, c, came(pull(home, exe7, h, 2, ChunkSize))) // too late
	step(t, c, Written{Fetch: 1, Offset: ChunkSize})
	rest = fails(t, c, NodeGone{other}, errs.ErrWorkerCrashed, exe9)
	if !reflect.DeepEqual(rest, []Effect{Drop{1}}) {
		t.Fatalf("without a node it does %+v", rest)
	}
	step(t, c, Want{Key: exe9, From: other}, Ask{other, exe9}) // it can succeed later
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	h, small := Hash{1}, Place{Hash: Hash{1}}
	begun := func(t *testing.T) *Core {
		c := New(Config{})
		step(t, c, Want{Key: exe7, From: home}, Ask{home, exe7})
		step(t, c, Found{Node: home, Key: exe7, Hash: h, Size: 10}, Look{1, small})
		step(t, c, Looked{Fetch: 1}, Begin{1, small, 10})
		step(t, c, Begun{Fetch: 1}, pull(home, exe7, h, 0, 10))
		return c
	}
	disk := errs.New(errs.CodeOutOfDisk, "full")
	t.Run("none", func(t *testing.T) {
		c := New(Config{})
		step(t, c, Want{Key: exe7, From: home}, Ask{home, exe7})
		fails(t, c, Found{Node: home, Key: exe7, Err: errs.New(errs.CodeNotFound, "none")}, errs.ErrNotFound, exe7)
	})
	t.Run("no room", func(t *testing.T) {
		c := New(Config{})
		c.Step(0, Want{Key: exe7, From: home})
		c.Step(0, Found{Node: home, Key: exe7, Hash: h, Size: 10})
		c.Step(0, Looked{Fetch: 1})
		fails(t, c, Begun{Fetch: 1, Err: disk}, errs.ErrOutOfDisk, exe7)
	})
	t.Run("too large", func(t *testing.T) {
		c := New(Config{Limit: 100})
		c.Step(0, Want{Key: exe7, From: home})
		c.Step(0, Found{Node: home, Key: exe7, Hash: h, Size: ^uint64(0)})
		fails(t, c, Looked{Fetch: 1}, errs.ErrOutOfDisk, exe7)
	})
	t.Run("short chunk", func(t *testing.T) {
		rest := fails(t, begun(t), Chunk{Node: home, Key: exe7, Hash: h, Data: make([]byte, 9)}, errs.ErrProtocol, exe7)
		if !reflect.DeepEqual(rest, []Effect{Drop{1}}) {
			t.Errorf("it does %+v", rest)
		}
	})
	t.Run("no chunk", func(t *testing.T) {
		fails(t, begun(t), Chunk{Node: home, Key: exe7, Hash: h, Err: errs.New(errs.CodeNotFound, "it changed")}, errs.ErrNotFound, exe7)
	})
	t.Run("disk", func(t *testing.T) {
		c := begun(t)
		c.Step(0, Chunk{Node: home, Key: exe7, Hash: h, Data: make([]byte, 10)})
		rest := fails(t, c, Written{Fetch: 1, Err: disk}, errs.ErrOutOfDisk, exe7)
		if !reflect.DeepEqual(rest, []Effect{Drop{1}}) {
			t.Errorf("it does %+v", rest)
		}
	})
	t.Run("wrong hash", func(t *testing.T) {
		c := begun(t)
		c.Step(0, Chunk{Node: home, Key: exe7, Hash: h, Data: make([]byte, 10)})
		c.Step(0, Written{Fetch: 1})
		fails(t, c, Stored{Fetch: 1, Err: errs.New(errs.CodeProtocol, "wrong")}, errs.ErrProtocol, exe7)
	})
	t.Run("job over", func(t *testing.T) {
		fails(t, begun(t), Over{exe7.Job}, errs.ErrOwnerDied, exe7)
	})
	t.Run("two sizes", func(t *testing.T) {
		c := begun(t)
		step(t, c, Want{Key: exe8, From: home}, Ask{home, exe8})
		fails(t, c, Found{Node: home, Key: exe8, Hash: h, Size: 11}, errs.ErrProtocol, exe8)
	})
}

// What no job uses is removed for what comes, longest unused first; what jobs use is not.
func TestTheCacheIsBounded(t *testing.T) {
	old, used, mid := Kept{Hash: Hash{1}, Size: 40, Used: 1}, Kept{Hash: Hash{2}, Size: 40, Used: 0, Jobs: []ids.JobID{exe8.Job}}, Kept{Hash: Hash{3}, Size: 20, Used: 2}
	c := New(Config{Limit: 100, Kept: []Kept{mid, used, old}})
	want := func(k Key, h Hash, fetch, size uint64, then ...Effect) {
		t.Helper()
		step(t, c, Want{Key: k, From: home}, Ask{home, k})
		step(t, c, Found{Node: home, Key: k, Hash: h, Size: size}, Look{fetch, Place{Hash: h}})
		if then != nil {
			step(t, c, Looked{Fetch: fetch}, then...)
		}
	}
	want(exe7, Hash{4}, 1, 30, Remove{old.Hash}, Begin{1, Place{Hash: Hash{4}}, 30})
	want(exe9, Hash{5}, 2, 60, nil...)
	fails(t, c, Looked{Fetch: 2}, errs.ErrOutOfDisk, exe9)
	step(t, c, Over{exe8.Job})
	want(exe9, Hash{5}, 3, 60, Remove{used.Hash}, Begin{3, Place{Hash: Hash{5}}, 60})
}

// A function lies with its job, and counts for no cache.
func TestAFunctionLiesWithItsJob(t *testing.T) {
	c, k := New(Config{Limit: 10}), Key{Job: exe7.Job, Kind: Function, Hash: Hash{6}}
	at := Place{Job: k.Job, Hash: k.Hash}
	step(t, c, Want{Key: k, From: other}, Ask{other, k})
	step(t, c, Found{Node: other, Key: k, Hash: k.Hash, Size: 0}, Look{1, at})
	step(t, c, Looked{Fetch: 1}, Begin{1, at, 0})
	step(t, c, Begun{Fetch: 1}, Store{1})
	step(t, c, Stored{Fetch: 1}, Have{k, at})
}

// A job that ends while a blob gets its place leaves it in the cache, where it counts.
func TestABlobWhoseJobEndedIsKept(t *testing.T) {
	c, h := New(Config{Limit: 100}), Hash{1}
	c.Step(0, Want{Key: exe7, From: home})
	c.Step(0, Found{Node: home, Key: exe7, Hash: h, Size: 0})
	c.Step(0, Looked{Fetch: 1})
	step(t, c, Begun{Fetch: 1}, Store{1})
	fails(t, c, Over{exe7.Job}, errs.ErrOwnerDied, exe7)
	step(t, c, Stored{Fetch: 1})
	if k := c.cache[h]; k == nil || len(k.Jobs) != 0 {
		t.Errorf("the cache has %+v", k)
	}
}
