package oplog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// ring is a log as an owner uses it, and what it has to say: what each key's last record is. A key is replaced, and forgotten, by a later record. Records
// have numbers, which order them.
type ring struct {
	t    *rapid.T
	dir  string
	opt  Options
	log  *Log
	full bool // no file can be made

	last  uint64
	keys  map[uint64]ringEntry // that are there
	tombs map[uint64]uint64    // forget records that have not lapsed: their places, by number
}

type ringEntry struct {
	cookie uint64
	rec    []byte
}

const (
	ringValue = iota
	ringForget
)

func ringRecord(kind byte, no, key uint64, n int) []byte {
	b := append([]byte{kind}, make([]byte, 16+n)...)
	binary.LittleEndian.PutUint64(b[1:], no)
	binary.LittleEndian.PutUint64(b[9:], key)
	for i := range n {
		b[17+i] = byte(no + uint64(i))
	}
	return b
}

func parseRing(b []byte) (kind byte, no, key uint64) {
	return b[0], binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])
}

func (r *ring) open(dir string) *Log {
	l := mustOpen(r.t, dir, r.opt)
	l.allocate = func(f *os.File, size int) error {
		if r.full {
			return unix.ENOSPC
		}
		return allocate(f, size)
	}
	return l
}

// append is false where there is no room, which is right on a full disk alone.
func (r *ring) append(b []byte) (uint64, bool) {
	c, err := r.log.Append(b)
	if err != nil && !r.full {
		r.t.Fatalf("append: %v", err)
	}
	return c, err == nil
}

func (r *ring) free(c uint64) {
	if err := r.log.Free(c); err != nil {
		r.t.Fatalf("free %#x: %v", c, err)
	}
}

// put makes a key, or replaces it: the new record is there before the old one is freed.
func (r *ring) put(key uint64, n int) {
	r.last++
	b := ringRecord(ringValue, r.last, key, n)
	c, ok := r.append(b)
	if !ok {
		return
	}
	old, replaces := r.keys[key]
	r.keys[key] = ringEntry{c, b}
	if replaces {
		r.free(old.cookie)
	}
}

func (r *ring) forget(key uint64, lapses bool) {
	r.last++
	c, ok := r.append(ringRecord(ringForget, r.last, key, 0))
	if !ok {
		return
	}
	r.tombs[r.last] = c
	r.free(r.keys[key].cookie)
	delete(r.keys, key)
	if lapses {
		r.lapse(r.last)
	}
}

func (r *ring) lapse(no uint64) {
	if err := r.log.Lapse(r.tombs[no]); err != nil {
		r.t.Fatal(err)
	}
	delete(r.tombs, no)
}

// tend is an owner's upkeep. A process may be killed at any point of it.
func (r *ring) tend(budget int) (more bool) {
	more, err := r.log.Tend(budget, func(c uint64, rec []byte) error {
		kind, no, key := parseRing(rec)
		at := r.tombs[no]
		if kind == ringValue {
			at = r.keys[key].cookie
		}
		if at != c {
			r.t.Fatalf("record %d at %#x is to be moved, it lies at %#x", no, c, at)
		}
		moved, err := r.log.Append(rec)
		if err != nil {
			return err
		}
		if rapid.IntRange(0, 60).Draw(r.t, "looks") == 0 {
			r.look()
		}
		if kind == ringValue {
			r.keys[key] = ringEntry{moved, bytes.Clone(rec)}
		} else {
			r.tombs[no] = moved
		}
		return nil
	})
	if err != nil && !r.full {
		r.t.Fatalf("tend: %v", err)
	}
	return more && err == nil
}

// replayed is what a log says, with where each record lies, and the places of those that say nothing any more.
func (r *ring) replayed(l *Log) (keys map[uint64]ringEntry, tombs map[uint64]uint64, dead []uint64) {
	var rows []ringEntry
	if err := l.Replay(func(c uint64, rec []byte) bool {
		rows = append(rows, ringEntry{c, bytes.Clone(rec)})
		return true
	}); err != nil {
		r.t.Fatalf("replay: %v", err)
	}
	no := func(w ringEntry) uint64 { _, n, _ := parseRing(w.rec); return n }
	slices.SortFunc(rows, func(a, b ringEntry) int { return cmp.Or(cmp.Compare(no(a), no(b)), cmp.Compare(a.cookie, b.cookie)) })
	keys, tombs = make(map[uint64]ringEntry), make(map[uint64]uint64)
	for i, w := range rows {
		kind, n, key := parseRing(w.rec)
		if i+1 < len(rows) && no(rows[i+1]) == n { // it was moved
			dead = append(dead, w.cookie)
			continue
		}
		if old, ok := keys[key]; ok {
			dead = append(dead, old.cookie)
			delete(keys, key)
		}
		if kind == ringForget {
			tombs[n] = w.cookie
		} else {
			keys[key] = w
		}
	}
	return keys, tombs, dead
}

// look compares what the next process would find with what there is.
func (r *ring) look() {
	dir, err := os.MkdirTemp("", "oplog")
	if err != nil {
		r.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r.copyTo(dir)
	l := mustOpen(r.t, dir, r.opt)
	defer l.Close()
	keys, _, _ := r.replayed(l)
	r.compare(keys)
}

func (r *ring) copyTo(dir string) {
	es, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range es {
		b, err := os.ReadFile(filepath.Join(r.dir, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, e.Name()), b, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *ring) compare(keys map[uint64]ringEntry) {
	if !maps.EqualFunc(keys, r.keys, func(a, b ringEntry) bool { return bytes.Equal(a.rec, b.rec) }) {
		r.t.Fatalf("the log has %d keys, there are %d, or others", len(keys), len(r.keys))
	}
}

// kill goes on with what a killed process has left.
func (r *ring) kill() {
	dir, err := os.MkdirTemp("", "oplog")
	if err != nil {
		r.t.Fatal(err)
	}
	r.copyTo(dir)
	err = r.log.Close()
	if err = errors.Join(err, os.RemoveAll(r.dir)); err != nil {
		r.t.Fatal(err)
	}
	r.dir, r.log = dir, r.open(dir)
	keys, tombs, dead := r.replayed(r.log)
	r.compare(keys)
	r.keys, r.tombs = keys, tombs
	for _, c := range dead {
		if err := r.log.Free(c); err != nil && !errors.Is(err, ErrNoRecord) {
			r.t.Fatal(err)
		}
	}
}

// bounded checks what the log takes when nothing is due.
func (r *ring) bounded() {
	l, st := r.log, r.log.Stats()
	l.sync()
	live, waste := int64(0), int64(0)
	for _, e := range r.keys {
		live += int64(span(len(e.rec)))
	}
	live += int64(len(r.tombs) * span(17))
	if st.Live != live {
		r.t.Fatalf("%d bytes are counted as live, there are %d", st.Live, live)
	}
	if st.Live+st.Dead > 2*live+int64(r.opt.MinSegment) {
		r.t.Fatalf("%d bytes of records with %d live", st.Live+st.Dead, live)
	}
	largest := 0
	for _, s := range l.segs {
		largest = max(largest, s.size)
		if s != l.active {
			waste += int64(s.size - s.end)
		}
	}
	if most := st.Live + st.Dead + int64(largest) + waste + int64(len(l.segs)*headerSize); st.Bytes > most {
		r.t.Fatalf("%d bytes of segments, at most %d are right", st.Bytes, most)
	}
	if reserve := l.reserve; reserve != nil && reserve.size > 4*max(largest, r.opt.MaxSegment) || l.spareBytes() > r.opt.Reuse {
		r.t.Fatalf("%d bytes are spare", st.Spare)
	}
	onDisk := int64(0)
	es, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range es {
		if i, err := e.Info(); err == nil {
			onDisk += i.Size()
		}
	}
	if onDisk != st.Bytes+st.Spare {
		r.t.Fatalf("%d bytes in files, %d counted", onDisk, st.Bytes+st.Spare)
	}
}

// Whatever is appended, replaced, forgotten and tended, and whether there is room for it or not: a process that is killed at any time leaves what
// was there and nothing else, and when nothing is due the log takes no more than its bound.
func TestTheRingKeepsWhatItHasToSay(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "oplog")
		if err != nil {
			t.Fatal(err)
		}
		r := &ring{t: t, dir: dir, keys: make(map[uint64]ringEntry), tombs: make(map[uint64]uint64),
			opt: Options{MinSegment: 4096, MaxSegment: 4096 << rapid.IntRange(0, 3).Draw(t, "growth"), Reuse: 4096 << rapid.IntRange(0, 3).Draw(t, "reuse")}}
		r.log = r.open(dir)
		defer func() { r.log.Close(); os.RemoveAll(r.dir) }()
		some := func(of []uint64) uint64 { return rapid.SampledFrom(of).Draw(t, "of") }
		for range rapid.IntRange(15, 45).Draw(t, "steps") {
			keys := slices.Sorted(maps.Keys(r.keys))
			n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(500, 1500), rapid.IntRange(2000, 5000)).Draw(t, "size")
			switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
			case action < 3:
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					r.put(r.last+1, n)
				}
			case action < 5 && len(keys) > 0:
				key := some(keys)
				for range rapid.IntRange(1, 6).Draw(t, "n") {
					r.put(key, n)
				}
			case action < 7:
				for range min(len(keys), rapid.IntRange(0, 12).Draw(t, "n")) {
					key := some(slices.Sorted(maps.Keys(r.keys)))
					if r.forget(key, rapid.Bool().Draw(t, "lapses")); r.full {
						break
					}
				}
			case action == 7 && len(r.tombs) > 0:
				r.lapse(slices.Min(slices.Collect(maps.Keys(r.tombs))))
			case action == 8:
				r.full = rapid.IntRange(0, 3).Draw(t, "full") == 0
			case action == 9:
				r.kill()
			}
			if rapid.Bool().Draw(t, "tends") {
				r.tend(rapid.IntRange(1, 8000).Draw(t, "budget"))
			}
			if !r.full && rapid.IntRange(0, 3).Draw(t, "rests") == 0 {
				for r.tend(1 << 16) {
				}
				if !r.log.Due() && r.log.failed == 0 {
					r.bounded()
				}
			}
			if rapid.IntRange(0, 15).Draw(t, "looks") == 0 {
				r.look()
			}
		}
		r.look()
	})
}
