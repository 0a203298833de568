package blobs

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// world is what lies around a core: the nodes that are asked, the disk, and who waits. Answers come in any order, from each node in the order sent.
type world struct {
	t     *rapid.T
	core  *Core
	last  uint64 // number of the last fetch
	old   uint64 // number of the last fetch of the core before: nothing is left of it
	gone  map[ids.Home]bool
	nodes map[ids.Home][]Event // what each will answer, in order
	disk  []Event              // what the disk will answer, in any order
	parts map[uint64]*onDisk
	files map[Place][]byte
	wants map[Key]ids.Home // unanswered
	uses  map[Key]Place    // of jobs that go on
}

// onDisk is a file that is being written.
type onDisk struct {
	place Place
	data  []byte
	wrote map[uint64]bool
}

// limit has room for two of the three blobs that jobs share, but not for every two.
const limit = 5 * ChunkSize / 2

// bytesOf is the blob that has a hash.
func bytesOf(h Hash) []byte {
	return bytes.Repeat([]byte{h[0]}, int(h[0])*ChunkSize/2+int(h[0]))
}

// hashOf is which blob a key is: jobs share some.
func hashOf(k Key) Hash {
	if k.Kind == Function {
		return k.Hash
	}
	return Hash{byte(1 + (uint64(k.Job)+uint64(k.Kind))%3)}
}

func (w *world) restart() {
	cfg := Config{Limit: limit, First: w.last + 1}
	for p, data := range w.files {
		if p.Job == 0 {
			k := Kept{Hash: p.Hash, Size: uint64(len(data))}
			for key, at := range w.uses {
				if at == p {
					k.Jobs = append(k.Jobs, key.Job)
				}
			}
			cfg.Kept = append(cfg.Kept, k)
		}
	}
	w.core, w.old = New(cfg), w.last
	clear(w.parts)
	for k, from := range w.wants {
		w.step(Want{Key: k, From: from})
	}
}

func (w *world) step(ev Event) {
	if rapid.IntRange(0, 99).Draw(w.t, "crash") == 99 {
		w.restart()
	}
	for _, e := range w.core.Step(0, ev) {
		w.do(e)
	}
	w.core.validate(w.t)
	var held uint64
	for p, data := range w.files {
		if p.Job == 0 {
			held += uint64(len(data))
		}
	}
	if held > limit {
		w.t.Fatalf("the cache has %d bytes, more than %d", held, limit)
	}
}

func (w *world) fault(name string) *errs.Error {
	if rapid.IntRange(0, 19).Draw(w.t, name) == 19 {
		return errInjected
	}
	return nil
}

func (w *world) do(e Effect) {
	switch e := e.(type) {
	case Ask:
		w.say(e.Node, Found{Node: e.Node, Key: e.Key, Hash: hashOf(e.Key), Size: uint64(len(bytesOf(hashOf(e.Key)))), Err: w.fault("found")})
	case Pull:
		if e.Hash != hashOf(e.Key) {
			w.t.Fatalf("%+v is pulled as %v", e.Key, e.Hash)
		}
		w.say(e.Node, Chunk{Node: e.Node, Key: e.Key, Hash: e.Hash, Offset: e.Offset, Data: bytesOf(e.Hash)[e.Offset : e.Offset+e.Size], Err: w.fault("chunk")})
	case Look:
		w.last = max(w.last, e.Fetch)
		_, have := w.files[e.Place]
		w.disk = append(w.disk, Looked{Fetch: e.Fetch, Have: have})
	case Begin:
		err := w.fault("begin")
		if err == nil {
			w.parts[e.Fetch] = &onDisk{place: e.Place, data: make([]byte, e.Size), wrote: make(map[uint64]bool)}
		}
		w.disk = append(w.disk, Begun{Fetch: e.Fetch, Err: err})
	case Write:
		p := w.parts[e.Fetch]
		if p == nil || p.wrote[e.Offset] {
			w.t.Fatalf("%d bytes at %d of fetch %d are written twice, or into nothing", len(e.Data), e.Offset, e.Fetch)
		}
		p.wrote[e.Offset] = true
		copy(p.data[e.Offset:], e.Data)
		w.disk = append(w.disk, Written{Fetch: e.Fetch, Offset: e.Offset, Err: w.fault("write")})
	case Store:
		p := w.parts[e.Fetch]
		delete(w.parts, e.Fetch)
		if !bytes.Equal(p.data, bytesOf(p.place.Hash)) {
			w.t.Fatalf("fetch %d is stored and not whole", e.Fetch)
		}
		err := w.fault("store")
		if err == nil {
			w.files[p.place] = p.data
		}
		w.disk = append(w.disk, Stored{Fetch: e.Fetch, Err: err})
	case Drop:
		if w.parts[e.Fetch] == nil && e.Fetch > w.old {
			w.t.Fatalf("fetch %d is dropped, of which there is nothing", e.Fetch)
		}
		delete(w.parts, e.Fetch)
	case Remove:
		for k, p := range w.uses {
			if p == (Place{Hash: e.Hash}) {
				w.t.Fatalf("blob %v is removed, which job %v uses", e.Hash, k.Job)
			}
		}
		delete(w.files, Place{Hash: e.Hash})
	case Have:
		w.answered(e.Key)
		if _, ok := w.files[e.Place]; !ok || e.Place.Hash != hashOf(e.Key) {
			w.t.Fatalf("%+v is to be at %+v, and is not", e.Key, e.Place)
		}
		w.uses[e.Key] = e.Place
	case Failed:
		w.answered(e.Key)
	}
}

func (w *world) answered(k Key) {
	if _, ok := w.wants[k]; !ok {
		w.t.Fatalf("%+v is answered, and nobody wants it", k)
	}
	delete(w.wants, k)
}

func (w *world) say(node ids.Home, ev Event) {
	if !w.gone[node] {
		w.nodes[node] = append(w.nodes[node], ev)
	}
}

// answer has a node or the disk answer; false: nothing is to be answered.
func (w *world) answer() bool {
	var from []ids.Home
	for _, n := range []ids.Home{1, 2} {
		if len(w.nodes[n]) > 0 {
			from = append(from, n)
		}
	}
	n := len(from)
	if n += len(w.disk); n == 0 {
		return false
	}
	i := rapid.IntRange(0, n-1).Draw(w.t, "answer")
	var ev Event
	if i < len(from) {
		ev, w.nodes[from[i]] = w.nodes[from[i]][0], w.nodes[from[i]][1:]
	} else {
		i -= len(from)
		ev = w.disk[i]
		w.disk = append(w.disk[:i:i], w.disk[i+1:]...)
	}
	w.step(ev)
	return true
}

// Whatever happens in whatever order: each want is answered once, what is said to be here is here and whole, what jobs use is not removed, and the bounds hold.
func TestEveryWantIsAnswered(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		w := &world{
			t: rt, gone: make(map[ids.Home]bool), nodes: make(map[ids.Home][]Event), parts: make(map[uint64]*onDisk), files: make(map[Place][]byte),
			wants: make(map[Key]ids.Home), uses: make(map[Key]Place),
		}
		w.restart()
		node := rapid.SampledFrom([]ids.Home{1, 2})
		job := rapid.Custom(func(t *rapid.T) ids.JobID {
			return ids.JobID(node.Draw(t, "node").ID(uint64(rapid.IntRange(1, 3).Draw(t, "n"))))
		})
		rt.Repeat(map[string]func(*rapid.T){
			"want": func(t *rapid.T) {
				k := Key{Job: job.Draw(t, "job"), Kind: Kind(rapid.IntRange(1, 3).Draw(t, "kind"))}
				from := k.Job.Home()
				if k.Kind == Function {
					k.Hash = Hash{byte(rapid.IntRange(1, 2).Draw(t, "hash"))}
					from = node.Draw(t, "from")
				}
				if _, waits := w.wants[k]; !waits && !w.gone[from] {
					w.wants[k] = from
					w.step(Want{Key: k, From: from})
				}
			},
			"answer": func(*rapid.T) { w.answer() },
			"answers": func(*rapid.T) {
				for range 4 {
					if !w.answer() {
						return
					}
				}
			},
			"over": func(t *rapid.T) {
				j := job.Draw(t, "job")
				for k := range w.uses {
					if k.Job == j {
						delete(w.uses, k)
					}
				}
				w.step(Over{j})
			},
			"gone": func(t *rapid.T) {
				n := node.Draw(t, "node")
				w.nodes[n] = nil
				w.step(NodeGone{n})
			},
			"": func(*rapid.T) {},
		})
		for w.answer() {
		}
		if len(w.wants) > 0 || len(w.core.fetches) > 0 || len(w.parts) > 0 {
			rt.Fatalf("%+v wait at the end, %d fetches and %d files go on", w.wants, len(w.core.fetches), len(w.parts))
		}
	})
}
