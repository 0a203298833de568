package oplog

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/testkit"
)

// fill appends records of n bytes until the log has so many segments, and gives their cookies.
func fill(t *testing.T, l *Log, segments, n int) (cookies []uint64) {
	t.Helper()
	for l.Stats().Segments < segments {
		c, err := l.Append(make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	return cookies
}

func free(t *testing.T, l *Log, cookies ...uint64) {
	t.Helper()
	for _, c := range cookies {
		if err := l.Free(c); err != nil {
			t.Fatal(err)
		}
	}
}

// again moves each record and keeps where it went.
func again(l *Log, moved *[]uint64) func(uint64, []byte) error {
	return func(_ uint64, rec []byte) error {
		c, err := l.Append(rec)
		if err == nil {
			*moved = append(*moved, c)
		}
		return err
	}
}

// tended tends the log until nothing is due.
func tended(t *testing.T, l *Log, move func(uint64, []byte) error) {
	t.Helper()
	for more := l.Due(); more; {
		var err error
		if more, err = l.Tend(1000, move); err != nil {
			t.Fatal(err)
		}
	}
	if st := l.Stats(); st.Dead > st.Live+int64(l.opt.MinSegment) {
		t.Fatalf("when nothing is due: %+v", st)
	}
}

// Bytes count, not records: a few large ones that are dead among many small ones that live are given up, and the other way round.
func TestTendCountsBytes(t *testing.T) {
	for name, sizes := range map[string][2]int{"large ones die": {8, 4000}, "small ones die": {4000, 8}} {
		t.Run(name, func(t *testing.T) {
			l := mustOpen(t, t.TempDir(), Options{MinSegment: 32 << 10, MaxSegment: 32 << 10})
			defer l.Close()
			var lives, dies []uint64
			for l.Stats().Segments < 10 {
				for i, n := range sizes {
					c, err := l.Append(make([]byte, n))
					if err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						lives = append(lives, c)
					} else {
						dies = append(dies, c)
					}
				}
			}
			free(t, l, dies...)
			if large := sizes[1] > sizes[0]; l.Due() != large {
				t.Fatalf("due: %v, with %+v", l.Due(), l.Stats())
			}
			var moved []uint64
			tended(t, l, again(l, &moved))
			if st := l.Stats(); st.Records != len(lives) {
				t.Errorf("%d records are left of %d", st.Records, len(lives))
			}
		})
	}
}

// The oldest segment alone is emptied, and for each byte that is given up at most one is moved.
func TestTendMovesNoMoreThanItGivesUp(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 32 << 10, MaxSegment: 32 << 10})
	defer l.Close()
	held := fill(t, l, 20, 100) // all live, and then replaced in any order
	all, bytes := l.Stats().Live, int64(0)
	at := make(map[uint64]int)
	for i, c := range held {
		at[c] = i
	}
	rng := testkit.Rand(t)
	for range 30_000 {
		c, err := l.Append(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		i := rng.IntN(len(held))
		free(t, l, held[i])
		delete(at, held[i])
		held[i], at[c] = c, i
		if !l.Due() {
			continue
		}
		last := uint64(0)
		if _, err := l.Tend(500, func(c uint64, rec []byte) error {
			if c>>32 != uint64(l.segs[0].seq) || c < last {
				t.Fatalf("%#x is moved after %#x, from a log that begins with segment %d", c, last, l.segs[0].seq)
			}
			last = c
			bytes += int64(span(len(rec)))
			moved, err := l.Append(rec)
			i := at[c]
			delete(at, c)
			held[i], at[moved] = moved, i
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if st := l.Stats(); st.Live != all || st.Records != len(held) {
		t.Errorf("%d records of %d bytes were live, now %+v", len(held), all, st)
	}
	if appended := int64(30_000 * span(100)); bytes == 0 || bytes > appended {
		t.Errorf("%d bytes were moved, %d appended", bytes, appended)
	}
}

func TestTendStopsAtItsBudgetAndAtAnError(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 32 << 10, MaxSegment: 32 << 10})
	defer l.Close()
	for i, c := range fill(t, l, 8, 100) {
		if i%10 != 0 {
			free(t, l, c)
		}
	}
	left := l.Stats().Records
	boom := errors.New("boom")
	if more, err := l.Tend(1<<20, func(uint64, []byte) error { return boom }); more || !errors.Is(err, boom) {
		t.Fatalf("more %v, err %v", more, err)
	}
	if l.Due() {
		t.Error("it is due although nothing has changed")
	}
	fill(t, l, 9, 100) // a segment could be made
	l.tended = l.sealed + int64(l.off)
	rounds := 0
	var moved []uint64
	for more := true; more; rounds++ {
		var err error
		if more, err = l.Tend(1000, again(l, &moved)); err != nil {
			t.Fatal(err)
		}
	}
	if rounds < 5 || l.Stats().Records < left {
		t.Fatalf("%+v after %d rounds that moved %d", l.Stats(), rounds, len(moved))
	}
}

// Records that Tend moves can fill several segments: the segment that it reads stays mapped until it is done,
// although two others were written since.
func TestTendReadsWhatItsAppendsRetire(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 8 << 10, MaxSegment: 8 << 10})
	defer l.Close()
	rec := bytes.Repeat([]byte("x"), 1000)
	var old []uint64
	for l.Stats().Segments < 4 {
		c, err := l.Append(rec)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, c)
	}
	for i, c := range old {
		if i > 1 && i%7 != 0 { // one or two records stay in each segment
			free(t, l, c)
		}
	}
	moved := 0
	l.tended = l.sealed + int64(l.off)
	if _, err := l.Tend(align, func(_ uint64, r []byte) error {
		moved++
		for range 20 { // two segments and more
			if _, err := l.Append(r); err != nil {
				return err
			}
		}
		if !bytes.Equal(r, rec) {
			t.Error("the record that is read has changed")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if moved != 1 {
		t.Errorf("%d records moved for a budget of less than one", moved)
	}
}

// What has lapsed keeps its segment until there is nothing before it. It is never moved, and does not count as live.
func TestWhatHasLapsedGoesWithTheTail(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 8 << 10, MaxSegment: 8 << 10})
	defer l.Close()
	old := fill(t, l, 2, 100)
	tomb := old[len(old)-1] // the first of the second segment
	rest := fill(t, l, 3, 100)
	live := l.Stats().Live
	for range 2 {
		if err := l.Lapse(tomb); err != nil {
			t.Fatal(err)
		}
	}
	free(t, l, rest[:len(rest)-1]...)
	if st := l.Stats(); st.Segments != 3 || st.Live != live-int64(len(rest)*span(100)) {
		t.Fatalf("of the second segment the lapsed record is left: %+v", st)
	}
	if _, err := l.Read(tomb); err != nil {
		t.Error(err)
	}
	free(t, l, old[:len(old)-1]...)
	if st := l.Stats(); st.Segments != 1 || st.Dead != 0 || st.Live != int64(span(100)) {
		t.Errorf("without the first segment: %+v", st)
	}
	if _, err := l.Read(tomb); !errors.Is(err, ErrNoRecord) {
		t.Errorf("the lapsed record is read: %v", err)
	}
}

// However much is appended between two calls, what is live and dead stays within the bound.
func TestTendKeepsPaceWithAppends(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 32 << 10, MaxSegment: 32 << 10})
	defer l.Close()
	held := fill(t, l, 10, 100)
	at := make(map[uint64]int)
	for i, c := range held {
		at[c] = i
	}
	rng := testkit.Rand(t)
	for range 100 {
		for range 1000 {
			c, err := l.Append(make([]byte, 100))
			if err != nil {
				t.Fatal(err)
			}
			i := rng.IntN(len(held))
			free(t, l, held[i])
			delete(at, held[i])
			held[i], at[c] = c, i
		}
		if _, err := l.Tend(1, func(c uint64, rec []byte) error {
			moved, err := l.Append(rec)
			i := at[c]
			delete(at, c)
			held[i], at[moved] = moved, i
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if st := l.Stats(); st.Dead > st.Live+int64(l.opt.MinSegment)+int64(1000*span(100)) {
			t.Fatalf("it falls behind: %+v", st)
		}
	}
}

// A log that has become small does not stay in a large segment.
func TestALargeSegmentGoesWhenLittleIsLive(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 8 << 10, MaxSegment: 1 << 20, Reuse: 1 << 20})
	defer l.Close()
	held := fill(t, l, 2, 100)[0]
	peak := fill(t, l, 30, 100)
	free(t, l, peak...)
	large := l.Stats()
	for range 40_000 { // four megabytes
		c, err := l.Append(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		free(t, l, c)
		if l.Due() {
			var moved []uint64
			tended(t, l, again(l, &moved))
		}
	}
	if st := l.Stats(); st.Bytes+st.Spare > 100<<10 || l.active.size > 16<<10 {
		t.Errorf("of %d bytes there are %d still, and %d spare; the active segment has %d", large.Bytes, st.Bytes, st.Spare, l.active.size)
	}
	_ = held
}

// No further segment can be made. The tail moves on into the reserve, and what is given up is written again: the log goes on, and nothing that was taken is lost.
func TestTheLogGoesOnWhenNoFileCanBeMade(t *testing.T) {
	for name, opt := range map[string]Options{
		"files":          {MinSegment: 16 << 10, MaxSegment: 64 << 10},
		"files, small":   {MinSegment: 16 << 10, MaxSegment: 16 << 10, Reuse: 1},
		"nameless files": {MinSegment: 16 << 10, MaxSegment: 64 << 10, Unlink: true, Memory: 32 << 10, Reuse: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustOpen(t, t.TempDir(), opt)
			defer l.Close()
			var held []uint64
			for i := 0; l.Stats().Segments < 4; i++ {
				c, err := l.Append(numbered(uint64(i)))
				if err != nil {
					t.Fatal(err)
				}
				if i%4 == 0 {
					held = append(held, c)
				} else {
					free(t, l, c)
				}
			}
			l.allocate = func(*os.File, int) error { return unix.ENOSPC }
			move := func(old uint64, rec []byte) error {
				c, err := l.Append(rec)
				for i := range held {
					if held[i] == old && err == nil {
						held[i] = c
					}
				}
				return err
			}
			failed := 0
			for i := range 20_000 {
				c, err := l.Append(make([]byte, 100))
				if err != nil {
					failed++
				} else {
					free(t, l, c)
				}
				if l.Due() {
					if _, err := l.Tend(4096, move); err != nil {
						t.Fatalf("after %d records: %v", i, err)
					}
				}
			}
			if failed > 1000 {
				t.Errorf("%d of 20,000 records could not be appended", failed)
			}
			for i, c := range held {
				if rec, err := l.Read(c); err != nil || !bytes.Equal(rec, numbered(uint64(4*i))) {
					t.Fatalf("record %d: %v", i, err)
				}
			}
		})
	}
}

// The first segment of a job has no reserve beside it.
func TestASmallLogHasNoReserve(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, Options{MinSegment: 16 << 10, MaxSegment: 16 << 10})
	defer l.Close()
	fill(t, l, 1, 100)
	if n := files(t, dir); n != 1 {
		t.Errorf("%d files", n)
	}
	fill(t, l, 2, 100)
	if n := files(t, dir); n != 3 || l.reserve == nil {
		t.Errorf("%d files with two segments", n)
	}
}
