package memmon

import (
	"testing"
	"time"
)

func TestTheStoreHasWhatHeapsLeave(t *testing.T) {
	const mib, second = 1 << 20, int64(time.Second)
	c, err := New(Config{Total: 1000 * mib * spare / (spare - 1)})
	if err != nil {
		t.Fatal(err)
	}
	room := func(now int64, heaps uint64) uint64 {
		t.Helper()
		for _, e := range c.Step(now, Heaps{heaps}) {
			if e, ok := e.(StoreRoom); ok {
				return e.Bytes
			}
		}
		t.Fatal("heaps without an answer")
		return 0
	}
	if got := room(second, 300*mib); got != 700*mib {
		t.Errorf("beside 300 MiB: %d", got)
	}
	if got := room(2*second, 800*mib); got != 200*mib {
		t.Errorf("beside 800 MiB: %d, at once", got)
	}
	if got := room(3*second, 300*mib); got > 300*mib {
		t.Errorf("a second after 800 MiB: %d, the next task may need as much", got)
	}
	now, last := 3*second, uint64(0)
	for range 400 {
		now += second / 4
		got := room(now, 300*mib)
		if got < last {
			t.Fatalf("room shrinks from %d to %d while heaps stay", last, got)
		}
		last = got
	}
	if last < 680*mib || last > 700*mib {
		t.Errorf("long after: %d", last)
	}
	if got := room(now, 5000*mib); got != 1 {
		t.Errorf("heaps above all of it: %d", got)
	}
	if c, err = New(Config{}); err != nil {
		t.Fatal(err)
	}
	if out := c.Step(0, Heaps{5}); len(out) != 0 {
		t.Errorf("without a total: %+v", out)
	}
}
