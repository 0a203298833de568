package oplog

import (
	"errors"
	"maps"
	"os"
	"slices"
	"testing"
)

// burst appends n records and frees them all.
func burst(t *testing.T, l *Log, n int) {
	t.Helper()
	var cookies []uint64
	for range n {
		c, err := l.Append(make([]byte, 150))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	for _, c := range cookies {
		if err := l.Free(c); err != nil {
			t.Fatal(err)
		}
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

// A burst reuses the segments of the one before: no segment is made, and none is mapped again.
func TestABurstWritesTheSegmentsOfTheOneBefore(t *testing.T) {
	for name, opt := range map[string]Options{
		"memory":         {MinSegment: 64 << 10, MaxSegment: 64 << 10, Unlink: true},
		"nameless files": {MinSegment: 64 << 10, MaxSegment: 64 << 10, Unlink: true, Memory: 1},
		"files":          {MinSegment: 64 << 10, MaxSegment: 64 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustOpen(t, dir, opt)
			defer func() {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				for _, e := range names(t, dir) {
					if isSpare(e) {
						t.Errorf("%s is left by Close", e)
					}
				}
			}()
			burst(t, l, 5000)
			mappings := func() map[*byte]bool {
				out := make(map[*byte]bool)
				for _, s := range append(slices.Clone(l.spares), l.active) {
					if s.mem == nil {
						t.Fatal("a spare segment is not mapped")
					}
					out[&s.mem[0]] = true
				}
				return out
			}
			before := mappings()
			burst(t, l, 4500)
			if after := mappings(); len(before) < 10 || !maps.Equal(before, after) {
				t.Errorf("%d mappings before, %d after, not the same", len(before), len(after))
			}
		})
	}
}

// A burst reuses the segments of one that grew, without a fresh segment.
func TestGrownSegmentsAreWrittenAgain(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 64 << 10, MaxSegment: 1 << 20, Unlink: true})
	defer l.Close()
	burst(t, l, 20_000)
	before := l.plain
	if len(l.spares) < 5 || l.spares[0].size == l.spares[len(l.spares)-1].size {
		t.Fatalf("%d spare segments of one size: the case is not what it is meant to be", len(l.spares))
	}
	for range 5 {
		burst(t, l, 12_000)
	}
	if l.plain != before || len(l.segs) != 1 {
		t.Errorf("%d bytes of memory after one burst, %d after six; %d segments are left", before, l.plain, len(l.segs))
	}
}

// Memory is used up to its bound, files hold the rest, and both are given back.
func TestMemoryOfALogIsBounded(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MinSegment: 16 << 10, MaxSegment: 16 << 10, Unlink: true, Memory: 64 << 10, Reuse: 32 << 10})
	var cookies []uint64
	for range 2000 {
		c, err := l.Append(make([]byte, 150))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	kinds := func() (plain, named int) {
		for _, s := range append(slices.Clone(l.segs), l.spares...) {
			if s.file == nil {
				plain++
			} else {
				named++
			}
		}
		return plain, named
	}
	if plain, named := kinds(); plain != 4 || named < 10 || l.plain != 64<<10 {
		t.Errorf("%d segments in memory, %d in files, %d bytes of memory counted", plain, named, l.plain)
	}
	for _, c := range cookies {
		if err := l.Free(c); err != nil {
			t.Fatal(err)
		}
	}
	plain, named := kinds()
	if spare := l.spareBytes(); spare != 32<<10 || plain+named != 3 || l.plain != plain*16<<10 {
		t.Errorf("%d bytes are spare; %d segments in memory, %d in files, %d bytes counted", spare, plain, named, l.plain)
	}
	if err := l.Remove(); err != nil || l.plain != 0 {
		t.Errorf("%v, %d bytes are left", err, l.plain)
	}
}

// A killed node leaves spare files, which the next one deletes.
func TestSpareFilesOfAKilledNodeAreDeleted(t *testing.T) {
	dir := t.TempDir()
	opt := Options{MinSegment: 64 << 10, MaxSegment: 64 << 10}
	l := mustOpen(t, dir, opt)
	burst(t, l, 2000)
	if left := names(t, dir); len(left) < 4 || !slices.ContainsFunc(left, isSpare) {
		t.Fatalf("a killed node leaves %v: no spare file among them", left)
	}
	again := mustOpen(t, dir, opt) // the first is as good as killed: nothing of it is closed
	for _, name := range names(t, dir) {
		if isSpare(name) {
			t.Errorf("%s is left", name)
		}
	}
	if err := again.Replay(func(uint64, []byte) bool { return true }); err != nil {
		t.Error(err)
	}
	if err := errors.Join(again.Close(), l.Close()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A segment may die and be reused during a replay: records that are appended meanwhile do not show up in its
// place.
func TestReplayGoesPastASegmentThatIsWrittenAgain(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 8 << 10, MaxSegment: 8 << 10, Unlink: true})
	defer l.Close()
	var old []uint64
	for l.Stats().Segments < 4 {
		c, err := l.Append(make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, c)
	}
	segment := func(c uint64) uint32 { return uint32(c >> 32) }
	var got []uint64
	if err := l.Replay(func(c uint64, _ []byte) bool {
		if got = append(got, c); len(got) == 1 { // the second dies, and is the fifth
			for _, c := range old {
				if segment(c) == 2 {
					if err := l.Free(c); err != nil {
						t.Fatal(err)
					}
				}
			}
			for fresh := uint64(0); segment(fresh) < 5; {
				var err error
				if fresh, err = l.Append([]byte("new")); err != nil {
					t.Fatal(err)
				}
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if len(l.spares) != 0 {
		t.Fatal("the segment was not written again: the case is not what it is meant to be")
	}
	if !slices.IsSorted(got) {
		t.Errorf("records are given in the order %x", got)
	}
	for _, c := range got {
		if s := segment(c); s == 2 || s == 5 {
			t.Errorf("record %x is given", c)
		}
	}
}
