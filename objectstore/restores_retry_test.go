package objectstore

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

// spilledBeside is a store whose first object is spilled, with room to restore it.
func spilledBeside(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	w.put(1, put(1), 10*mib)
	w.put2(1, put(2), 12*mib)
	w.step(FromClient{1, &wire.Abort{ID: put(2)}})
	w.relist(0)
	if o := w.c.objs[put(1)].o; o.resident || !o.spilled {
		t.Fatalf("it is not spilled: %+v", w.c.Stats())
	}
	return w
}

var errAway = errors.New("too many open files")

func TestStorageThatIsAwayForAMomentLosesNothing(t *testing.T) {
	w := spilledBeside(t)
	w.broken = errAway
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(int64(time.Second))
	if len(w.lost) != 0 || len(w.resolved) != 0 {
		t.Fatalf("lost %+v, answered %+v", w.lost, w.resolved)
	}
	w.broken = nil
	w.relist(int64(10 * time.Second))
	if len(w.lost) != 0 || len(w.resolved) != 1 || w.resolved[0].Result.Err != nil {
		t.Fatalf("lost %+v, answered %+v", w.lost, w.resolved)
	}
}

func TestStorageThatStaysAwayLosesTheObject(t *testing.T) {
	w := spilledBeside(t)
	w.broken = errAway
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(int64(time.Minute))
	if len(w.lost) != 1 || w.c.alloc.Held() != 0 || w.c.restores.underWay != 0 {
		t.Fatalf("lost %+v, %+v", w.lost, w.c.Stats())
	}
}

func TestReadsThatPauseHoldUpNoOther(t *testing.T) {
	cfg := testConfig(16 * mib)
	cfg.MaxRestores = 1
	w := newWorld(t, cfg)
	w.join(1)
	for i := range 2 {
		w.put(1, put(i), mib)
	}
	w.put2(1, put(9), 16*mib)
	w.step(FromClient{1, &wire.Abort{ID: put(9)}})
	w.relist(0)
	w.broken = errAway
	w.step(PinForGet{Client: 1, ID: put(0)})
	w.relist(0)
	w.broken = nil
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(0)
	if len(w.resolved) != 1 || w.resolved[0].ID != put(1) {
		t.Fatalf("answered %+v: %+v", w.resolved, w.c.Stats())
	}
	w.relist(int64(time.Second))
	if len(w.resolved) != 2 || w.resolved[1].Result.Err != nil {
		t.Fatalf("answered %+v", w.resolved)
	}
}

func TestARestoreThatPausesCanBeDropped(t *testing.T) {
	w := spilledBeside(t)
	w.broken = errAway
	w.step(PinForGet{Client: 1, ID: put(1)})
	w.relist(int64(50 * time.Millisecond))
	w.step(DropAttempt{ID: put(1)})
	w.relist(0)
	if len(w.lost) != 1 || w.c.alloc.Held() != 0 || w.c.restores.underWay != 0 || len(w.c.jobs) != 0 || len(w.records) != 1 {
		t.Fatalf("lost %+v, %+v", w.lost, w.c.Stats())
	}
	w.broken = nil
	w.step(PinArgs{Job: 1, Task: task(1), Worker: 1, IDs: []ids.ObjectID{put(1)}})
	if len(w.lost) != 2 {
		t.Fatalf("lost %+v", w.lost)
	}
}
