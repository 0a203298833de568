package objectstore

import (
	"testing"
	"time"

	"mobula/internal/ids"
)

// use makes n objects of a MiB every 100 ms and frees them, for so long. It gives the least that was backed meanwhile.
func (w *world) use(n int, long time.Duration) (least uint64) {
	least = w.c.alloc.Limit()
	for end := w.now + int64(long); w.now < end; {
		for i := range n {
			w.put(1, put(i), mib)
		}
		for i := range n {
			w.step(Free{[]ids.ObjectID{put(i)}})
		}
		w.relist(int64(100 * time.Millisecond))
		least = min(least, w.c.alloc.Backed())
	}
	return least
}

// While work goes on, memory that it uses again and again stays warm; what only earlier work needed is given back.
func TestWarmIsWhatWasNeededLately(t *testing.T) {
	cfg := testConfig(32 * mib)
	cfg.WarmBytes, cfg.WarmIdle = mib, 10*time.Second
	w := newWorld(t, cfg)
	w.join(1)
	if least := w.use(24, time.Minute); least < 24*mib {
		t.Fatalf("down to %d bytes were backed, while 24 MiB were needed again and again", least)
	}
	w.use(3, 20*time.Second)
	if b := w.c.alloc.Backed(); b > 8*mib || b < 3*mib {
		t.Errorf("%d bytes are backed after 20 s in which 3 MiB were needed", b)
	}
	w.relist(int64(20 * time.Second))
	if b := w.c.alloc.Backed(); b > mib {
		t.Errorf("%d bytes are backed when nothing happens", b)
	}
}

// What is reserved ahead of a need that comes again and again is not given back between: it would be reserved anew each time.
func TestASteadyNeedIsNotGivenBack(t *testing.T) {
	cfg := testConfig(64 * mib)
	cfg.WarmBytes, cfg.WarmIdle, cfg.ReserveStep = mib, time.Second, 8*mib
	w := newWorld(t, cfg)
	w.join(1)
	const most, fewest = 40, 36
	made, freed := 0, 0
	cycle := func(long time.Duration) {
		for end := w.now + int64(long); w.now < end; {
			for made-freed < most {
				w.put(1, put(made), mib)
				made++
			}
			w.relist(int64(50 * time.Millisecond))
			for made-freed > fewest {
				w.step(Free{[]ids.ObjectID{put(freed)}})
				freed++
			}
			w.relist(int64(50 * time.Millisecond))
		}
	}
	cycle(5 * time.Second)
	before := w.punched
	cycle(10 * time.Second)
	if n := w.punched - before; n > 0 {
		t.Errorf("%d bytes were given back in 10 s of a need that stayed the same", n)
	}
}
