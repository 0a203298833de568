package owner

import (
	"errors"
	"slices"
	"testing"
)

// What a log could not take is read, freed and replayed as if it had, and goes to the log once that takes it.
func TestWhatALogCannotTakeIsKeptForIt(t *testing.T) {
	var r Rest
	a, b, c, d := r.Add([]byte("a"), 4), r.Add([]byte("b"), 4), r.Add([]byte("c"), 4), r.Add([]byte("d"), 4)
	if more := r.Add([]byte("e"), 4); more != 0 || a == 0 || d == 0 {
		t.Fatalf("cookies %x, %x, and %x beyond the limit", a, d, more)
	}
	if rec, known := r.Read(b); !known || string(rec) != "b" {
		t.Errorf("read %q, %v", rec, known)
	}
	if !r.Free(a) || !r.Lapse(c) || r.Free(1<<32|64) || r.Lapse(1<<32|64) {
		t.Error("a cookie of the log is taken for one of the rest, or the other way round")
	}
	var all []string
	r.Replay(func(_ uint64, rec []byte) bool {
		all = append(all, string(rec))
		return true
	})
	if !slices.Equal(all, []string{"b", "c", "d"}) {
		t.Errorf("replayed %q", all)
	}
	at := map[uint64]*uint64{b: &b, c: &c, d: &d}
	room, lapsed := 2, uint64(0)
	var log []string
	move := func() {
		r.Moves(func(cookie uint64, _ []byte) *uint64 { return at[cookie] }, func(rec []byte) (uint64, error) {
			if room == 0 {
				return 0, errors.New("full")
			}
			room--
			log = append(log, string(rec))
			return uint64(len(log)), nil
		}, func(cookie uint64) { lapsed = cookie })
	}
	delete(at, b) // its owner needs it no more
	room = 1
	move()
	if !slices.Equal(log, []string{"c"}) || c != 1 || lapsed != 1 || r.Len() != 1 {
		t.Errorf("the log has %q, %d has lapsed, %d are left", log, lapsed, r.Len())
	}
	room = 1
	move()
	if !slices.Equal(log, []string{"c", "d"}) || d != 2 || r.Len() != 0 || r.Add([]byte("four"), 4) == 0 {
		t.Errorf("the log has %q, %d are left", log, r.Len())
	}
}
