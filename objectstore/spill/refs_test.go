package spill

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// A file is deleted exactly when its last object is gone and nobody reads it.
func TestRefsDeleteAFileWithItsLastObject(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := NewRefs()
		live := map[Location]int{} // the model; empty objects may share a place
		holds := map[FileKey]int{}
		deleted := map[FileKey]bool{}
		of := func(k FileKey) (n int) {
			for l, c := range live {
				if l.Key() == k {
					n += c
				}
			}
			return n
		}
		draw := func() Location {
			size := rapid.SampledFrom([]uint64{0, 64, 100}).Draw(t, "size")
			off := rapid.Uint64Range(0, 3).Draw(t, "off")*1000 + size // one size at a place
			return Location{Target: uint16(rapid.IntRange(0, 1).Draw(t, "target")), File: rapid.Uint64Range(0, 2).Draw(t, "file"), Off: off, Size: size}
		}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			l := draw()
			k := l.Key()
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				if l.Size > 0 && live[l] > 0 {
					continue // only empty objects share a place
				}
				r.Add(l)
				live[l]++
				delete(deleted, k)
			case 1:
				last, known := r.Drop(l)
				if known != (live[l] > 0) {
					t.Fatalf("drop %+v: known %v, model has %d", l, known, live[l])
				}
				if live[l]--; live[l] <= 0 {
					delete(live, l)
				}
				if want := known && of(k) == 0 && holds[k] == 0; last != want {
					t.Fatalf("drop %+v: delete %v, want %v", l, last, want)
				}
				deleted[k] = deleted[k] || last
			case 2:
				if held := r.Hold(k); held != (of(k) > 0 || holds[k] > 0) {
					t.Fatalf("hold %+v: %v", k, held)
				} else if held {
					holds[k]++
				}
			case 3:
				if holds[k] == 0 {
					if r.Release(k) {
						t.Fatalf("a release without a hold deletes %+v", k)
					}
					continue
				}
				holds[k]--
				if last, want := r.Release(k), of(k) == 0 && holds[k] == 0; last != want {
					t.Fatalf("release %+v: delete %v, want %v", k, last, want)
				}
			}
			var count int
			var bytes uint64
			files := map[FileKey]bool{}
			for l, c := range live {
				count += c
				bytes += uint64(c) * l.Size
				files[l.Key()] = true
			}
			for k, n := range holds {
				if n > 0 {
					files[k] = true
				}
			}
			if r.count != count || r.bytes != bytes || len(r.files) != len(files) {
				t.Fatalf("refs count %d objects, %d bytes, %d files; model %d, %d, %d", r.count, r.bytes, len(r.files), count, bytes, len(files))
			}
		}
	})
}

func TestFuse(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 60).Draw(t, "sizes")
		least := rapid.Uint64Range(1, 100).Draw(t, "least")
		most := rapid.IntRange(1, 20).Draw(t, "most")
		all := make([]Item, len(sizes))
		for i, n := range sizes {
			all[i] = Item{ID: ids.ObjectID{Index: uint32(i)}, Data: make([]byte, n)}
		}
		var joined []Item
		files := Fuse(all, least, most)
		for i, f := range files {
			bytes := uint64(0)
			for _, it := range f {
				bytes += uint64(len(it.Data))
			}
			if len(f) == 0 || len(f) > most {
				t.Fatalf("file %d has %d objects, at most %d", i, len(f), most)
			}
			if i < len(files)-1 && bytes < least && len(f) < most {
				t.Fatalf("file %d has %d of %d bytes and %d of %d objects", i, bytes, least, len(f), most)
			}
			joined = append(joined, f...)
		}
		if !slices.EqualFunc(joined, all, func(a, b Item) bool { return a.ID == b.ID }) {
			t.Fatalf("objects are lost or out of order")
		}
	})
}

func TestRouterPrefersHealthyThenEven(t *testing.T) {
	r := NewRouter(3, 100)
	count := map[uint16]int{}
	for range 30 {
		n, ok := r.Pick(100, nil)
		if !ok {
			t.Fatal("no target")
		}
		r.Settled(n, 100, true)
		count[n]++
	}
	for n := range uint16(3) {
		if count[n] != 10 {
			t.Errorf("target %d got %d of 30 files", n, count[n])
		}
	}
	r.Turned(1, Failed)
	for range 6 {
		if n, _ := r.Pick(100, nil); n == 1 {
			t.Error("a failed target was preferred")
		} else {
			r.Settled(n, 100, true)
		}
	}
	r.Turned(1, Healthy)
	first, _ := r.Pick(100, nil)
	second, _ := r.Pick(100, nil)
	if first == 1 && second == 1 {
		t.Error("a target that came back gets everything")
	}
	if n, ok := r.Pick(1, map[uint16]error{0: nil, 2: nil}); !ok || n != 1 {
		t.Errorf("the only one not tried is 1, got %d, %v", n, ok)
	}
	if _, ok := r.Pick(1, map[uint16]error{0: nil, 1: nil, 2: nil}); ok {
		t.Error("all were tried, and one was picked")
	}
}

func TestRouterAvoidsATargetThatLagsBehind(t *testing.T) {
	r := NewRouter(2, 100)
	for range 40 { // target 0 never finishes, target 1 at once
		if n, _ := r.Pick(100, nil); n == 1 {
			r.Settled(1, 100, true)
		}
	}
	if w := r.targets[0].waiting; w > r.lag+200 {
		t.Errorf("%d bytes wait for a target that does not move", w)
	}
	if r.targets[1].assigned < 3000 {
		t.Errorf("the target that moves got %d of 4000 bytes", r.targets[1].assigned)
	}
}

func TestRefusedBytesAreNotCounted(t *testing.T) {
	r := NewRouter(1, 100)
	n, _ := r.Pick(70, nil)
	r.Settled(n, 70, false)
	if r.targets[0] != (share{}) {
		t.Errorf("after a refusal: %+v", r.targets[0])
	}
}
