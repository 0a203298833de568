package oplog

import "testing"

// A segment whose records stay live is in the way of what is stale behind it: it is emptied when that is a third of the log, and not before.
func TestCompactEmptiesTheOldestForWhatIsBehindIt(t *testing.T) {
	l := mustOpen(t, t.TempDir(), Options{MinSegment: 8 << 10, MaxSegment: 8 << 10})
	defer l.Close()
	var cookies []uint64
	for l.Stats().Segments < 4 {
		c, err := l.Append(make([]byte, 100))
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, c)
	}
	second := l.Second()
	if second>>32 != uint64(l.segs[1].seq) || cookies[0] >= second {
		t.Fatalf("the second segment begins at %#x, the log at %#x", second, cookies[0])
	}
	moved := 0
	move := func(cookie uint64, rec []byte) error {
		if cookie >= second {
			t.Errorf("%#x is moved, which is not in the oldest segment", cookie)
		}
		moved++
		_, err := l.Append(rec)
		return err
	}
	third := len(cookies) / 3
	if more, err := l.Compact(1<<20, third-1, move); more || err != nil || moved > 0 {
		t.Fatalf("%d of %d records moved for %d stale ones: %v, %v", moved, len(cookies), third-1, more, err)
	}
	if _, err := l.Compact(1<<20, third+1, move); err != nil || moved == 0 || l.Second() == second {
		t.Errorf("%d records moved, %v; the oldest segment is to go", moved, err)
	}
}
