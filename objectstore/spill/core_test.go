package spill

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// What a storage may say that this package does not look at.
var (
	errReadOnly = errors.New("read-only")
	errGone     = errors.New("gone")
)

// rig steps a core with a clock of its own and notes what it does.
type rig struct {
	t       interface{ Fatalf(string, ...any) }
	cfg     Config
	core    *Core
	now     int64
	last    uint64
	started map[uint64]Request
	reqs    map[uint64]Request
	refused map[uint64]error
	gaveUp  map[uint64]bool
	probes  []Probe
	health  Health
	wakeAt  int64
	joined  int
}

func newRig(t interface{ Fatalf(string, ...any) }, change func(*Config)) *rig {
	cfg := Default()
	if change != nil {
		change(&cfg)
	}
	return &rig{
		t: t, cfg: cfg, core: NewCore(cfg), now: 1e18,
		started: map[uint64]Request{}, reqs: map[uint64]Request{}, refused: map[uint64]error{}, gaveUp: map[uint64]bool{},
	}
}

func (r *rig) step(ev Event) {
	for _, f := range r.core.Step(r.now, ev) {
		switch f := f.(type) {
		case Start:
			req, ok := r.reqs[f.ID]
			if _, twice := r.started[f.ID]; !ok || twice {
				r.t.Fatalf("request %d started: submitted %v, before %v", f.ID, ok, twice)
			}
			r.started[f.ID] = req
			delete(r.reqs, f.ID)
			for _, id := range f.With {
				if r.reqs[id].Kind != Read || r.reqs[id].ID == 0 {
					r.t.Fatalf("request %d joined: %+v", id, r.reqs[id])
				}
				delete(r.reqs, id)
			}
			r.joined += len(f.With)
		case Refuse:
			if _, ok := r.started[f.ID]; f.Overdue && !ok {
				r.t.Fatalf("request %d refused as overdue, but not started", f.ID)
			}
			if f.Overdue {
				r.gaveUp[f.ID] = true
			} else {
				delete(r.reqs, f.ID)
				delete(r.started, f.ID)
			}
			r.refused[f.ID] = f.Why
		case Probe:
			r.probes = append(r.probes, f)
		case Turn:
			r.health = f.To
		case Wake:
			if f.After < 0 {
				r.t.Fatalf("timer in the past: %v", f.After)
			}
			if at := r.now + int64(f.After); r.wakeAt == 0 || at < r.wakeAt {
				r.wakeAt = at
			}
		}
	}
	n := [kinds]int{}
	for _, q := range r.started {
		n[q.Kind]++
	}
	if n[Write] > r.cfg.Writers || n[Read] > r.cfg.Readers || n[Remove] > 1 {
		r.t.Fatalf("%d writes, %d reads, %d deletes run", n[Write], n[Read], n[Remove])
	}
}

func (r *rig) submit(k Kind, size uint64) uint64 {
	r.last++
	req := Request{ID: r.last, Kind: k, Size: size, Off: 4096 * r.last, File: r.last / 8}
	r.reqs[req.ID] = req
	r.step(Submit{req})
	return req.ID
}

func (r *rig) finish(id uint64, err error) {
	req := r.started[id]
	if req.Kind != Remove || err == nil {
		delete(r.started, id)
	} else {
		delete(r.started, id)
		r.reqs[id] = req // it may be started again
	}
	r.step(Finished{id, err})
}

func (r *rig) pass(d time.Duration) {
	r.now += int64(d)
	if r.wakeAt != 0 && r.now >= r.wakeAt {
		r.wakeAt = 0
		r.step(Tick{})
	}
}

// answer answers the probe that is asked.
func (r *rig) answer(c Capacity, err error) {
	if len(r.probes) == 0 {
		r.t.Fatalf("nothing was asked")
	}
	r.probes = r.probes[1:]
	r.step(Probed{c, err})
}

func (r *rig) wantStarted(id uint64, want bool) {
	if _, ok := r.started[id]; ok != want {
		r.t.Fatalf("request %d started: %v, want %v", id, ok, want)
	}
}

func (r *rig) wantRefused(id uint64, want error) {
	if why, ok := r.refused[id]; !ok || !errors.Is(why, want) {
		r.t.Fatalf("request %d refused: %v, %v; want %v", id, ok, why, want)
	}
}

var roomy = Capacity{Used: 0, Total: 1 << 40}

func TestPoolsAreApart(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Writers, c.Readers = 1, 1 })
	w1, w2 := r.submit(Write, 10), r.submit(Write, 10)
	r.answer(roomy, nil)
	r1, r2, d1 := r.submit(Read, 10), r.submit(Read, 10), r.submit(Remove, 0)
	for _, id := range []uint64{w1, r1, d1} {
		r.wantStarted(id, true)
	}
	for _, id := range []uint64{w2, r2} {
		r.wantStarted(id, false)
	}
	r.finish(r1, nil)
	r.wantStarted(r2, true)
	r.finish(w1, nil)
	r.wantStarted(w2, true)
}

func TestCapacityIsAskedAtMostEveryInterval(t *testing.T) {
	r := newRig(t, nil)
	for range 100 {
		id := r.submit(Write, 1)
		if len(r.probes) > 0 {
			r.answer(roomy, nil)
		}
		r.wantStarted(id, true)
		r.finish(id, nil)
		r.pass(10 * time.Millisecond)
	}
	asked := 0
	for range 1000 {
		r.pass(time.Millisecond)
		id := r.submit(Write, 1)
		if len(r.probes) > 0 {
			asked++
			r.answer(roomy, nil)
		}
		r.wantStarted(id, true)
		r.finish(id, nil)
	}
	if asked < 9 || asked > 10 {
		t.Errorf("in one second of writes free space was asked %d times, want 10", asked)
	}
}

func TestThresholdIsNotPassed(t *testing.T) {
	r := newRig(t, nil)
	a := r.submit(Write, 60)
	r.answer(Capacity{Used: 800, Total: 1000}, nil)
	b, c := r.submit(Write, 90), r.submit(Write, 60)
	r.wantStarted(a, true)
	r.wantStarted(b, true)
	r.wantRefused(c, ErrFull) // 800+60+90+60 > 950, though nothing of it is written yet
	if r.health != Full {
		t.Errorf("health is %v", r.health)
	}
}

// Writes that run while free space is read may be on the disk in part, or not at all: they count until the next
// reading.
func TestWritesUnderWayCountWhenFreeSpaceIsAskedAgain(t *testing.T) {
	r := newRig(t, nil)
	a := r.submit(Write, 60)
	r.answer(Capacity{Used: 800, Total: 1000}, nil)
	r.wantStarted(a, true)
	r.pass(r.cfg.CapacityInterval)
	b := r.submit(Write, 100)
	r.answer(Capacity{Used: 800, Total: 1000}, nil) // nothing of the first yet
	r.wantRefused(b, ErrFull)
	r.finish(a, nil)
	r.pass(r.cfg.CapacityInterval)
	c := r.submit(Write, 80)
	r.answer(Capacity{Used: 860, Total: 1000}, nil)
	r.wantStarted(c, true) // it counts once
}

func TestMappedFilesCountBeforeFreeSpaceIsAskedAgain(t *testing.T) {
	r := newRig(t, nil)
	a := r.submit(Write, 60)
	r.answer(Capacity{Used: 800, Total: 1000}, nil)
	r.step(Taken{60})
	b := r.submit(Write, 60)
	r.wantStarted(a, true)
	r.wantRefused(b, ErrFull)
}

func TestAWriteWaitsForDeletesThatMakeRoom(t *testing.T) {
	r := newRig(t, nil)
	d := r.submit(Remove, 0)
	w := r.submit(Write, 100)
	r.answer(Capacity{Used: 900, Total: 1000}, nil)
	r.wantStarted(w, false)
	if len(r.refused) != 0 {
		t.Fatalf("refused while room was made: %v", r.refused)
	}
	r.finish(d, nil)
	r.answer(Capacity{Used: 500, Total: 1000}, nil)
	r.wantStarted(w, true)
}

func TestAFullDiskRefusesAtOnceAndComesBack(t *testing.T) {
	r := newRig(t, nil)
	a := r.submit(Write, 10)
	r.answer(roomy, nil)
	r.finish(a, fmt.Errorf("quota: %w", ErrFull)) // full, though statfs does not know
	r.wantRefused(a, ErrFull)
	b := r.submit(Write, 10)
	r.wantRefused(b, ErrFull)
	if len(r.probes) != 0 {
		t.Errorf("free space was asked within the interval")
	}
	r.pass(r.cfg.CapacityInterval)
	c := r.submit(Write, 10)
	r.answer(roomy, nil)
	r.wantStarted(c, true)
	r.finish(c, nil)
	if r.health != Healthy {
		t.Errorf("health is %v after a write that worked", r.health)
	}
}

// What gives more back than it takes may pass the threshold, but not the disk.
func TestAFullDiskTakesWhatFrees(t *testing.T) {
	r := newRig(t, nil)
	tight := Capacity{Used: 960, Total: 1000}
	frees := func(size uint64) uint64 {
		r.last++
		req := Request{ID: r.last, Kind: Write, Size: size, Frees: true}
		r.reqs[req.ID] = req
		r.step(Submit{req})
		return req.ID
	}
	a := r.submit(Write, 10)
	r.answer(tight, nil)
	r.wantRefused(a, ErrFull)
	b := frees(10)
	r.wantStarted(b, true)
	c := frees(40)
	r.wantRefused(c, ErrFull)
	r.finish(b, nil)
}

func TestAFailedTargetIsLeftAloneLongerEachTime(t *testing.T) {
	r := newRig(t, nil)
	a, b := r.submit(Write, 10), r.submit(Write, 10)
	r.answer(roomy, nil)
	r.finish(a, errReadOnly)
	r.wantRefused(a, errReadOnly)
	r.finish(b, errReadOnly)
	wait := 2 * r.cfg.ProbeAfter // two failures in a row
	for range 8 {
		c := r.submit(Write, 10)
		r.wantRefused(c, errReadOnly)
		r.pass(wait - time.Millisecond)
		if len(r.probes) != 0 {
			t.Fatalf("probed before %v had passed", wait)
		}
		r.pass(time.Millisecond)
		if len(r.probes) != 1 || !r.probes[0].Write {
			t.Fatalf("after %v: probes %v, want one that writes", wait, r.probes)
		}
		r.answer(Capacity{}, errReadOnly)
		wait = min(2*wait, r.cfg.ProbeAfter<<maxDoublings)
	}
	read1 := r.submit(Read, 10)
	r.wantStarted(read1, true) // what can be read is read
	r.pass(wait)
	r.answer(roomy, nil)
	d := r.submit(Write, 10)
	r.wantStarted(d, true)
}

func TestADeleteIsTriedAgainThenLeft(t *testing.T) {
	r := newRig(t, nil)
	d := r.submit(Remove, 0)
	busy := errors.New("busy")
	for i := range maxDeletes {
		r.wantStarted(d, true)
		r.finish(d, busy)
		if i < maxDeletes-1 {
			r.wantStarted(d, false)
			r.pass(r.cfg.ProbeAfter)
		}
	}
	r.wantRefused(d, busy)
}

func TestReadsOfNeighboursAreJoined(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Readers = 1 })
	read1 := func(file, off, size uint64) {
		r.last++
		req := Request{ID: r.last, Kind: Read, File: file, Off: off, Size: size}
		r.reqs[req.ID] = req
		r.step(Submit{req})
	}
	read1(9, 0, 10) // runs; the others queue
	for i := range uint64(10) {
		read1(1, 4096+i*200_000, 199_000) // 1 MiB holds five
	}
	read1(1, 0, 10)           // behind them in the queue, before them in the file
	read1(2, 5000, 10)        // another file
	read1(2, 5000+40_000, 10) // too far on
	want := []int{0, 4, 4, 0, 0, 0}
	for id, i := uint64(1), 0; len(r.started) > 0; i++ {
		r.wantStarted(id, true)
		if i >= len(want) || r.joined != want[i] {
			t.Fatalf("start %d joined %d reads, want %v", i, r.joined, want)
		}
		r.joined = 0
		r.finish(id, nil)
		id += uint64(want[i]) + 1
	}
	if len(r.reqs)+len(r.core.known)+len(r.core.joined) != 0 {
		t.Errorf("left: %v %v", r.reqs, r.core.known)
	}
}

func TestCancelLeavesWhatRuns(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Writers, c.Readers = 1, 1 })
	w1, w2 := r.submit(Write, 10), r.submit(Write, 10)
	r.answer(roomy, nil)
	r1, r2 := r.submit(Read, 10), r.submit(Read, 10)
	r.step(Cancel{})
	r.wantStarted(w1, true)
	r.wantStarted(r1, true)
	r.wantRefused(w2, nil)
	r.wantRefused(r2, nil)
	r.finish(w1, context.Canceled)
	if r.health != Healthy {
		t.Errorf("an interrupted write made the target %v", r.health)
	}
}

func TestWhatHangsIsGivenUp(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Writers, c.Readers = 1, 1 })
	w1 := r.submit(Write, 10)
	r.answer(roomy, nil)
	w2 := r.submit(Write, 10)
	r1 := r.submit(Read, 10)
	r2 := r.submit(Read, 10)
	r.pass(r.cfg.IOTimeout)
	if len(r.refused) != 0 {
		t.Fatalf("given up within IOTimeout: %v", r.refused)
	}
	r.pass(r.cfg.IOTimeout)
	r.wantRefused(w1, errStuck)
	r.wantRefused(w2, errStuck)
	r.wantRefused(r2, errStuck)
	if !r.gaveUp[w1] || r.refused[r1] != nil {
		t.Errorf("the write that hangs must be given up, the read that hangs not: %v", r.refused)
	}
	r.pass(r.cfg.ProbeAfter)
	r.answer(roomy, nil) // the target answers again, but the place is not free
	w3 := r.submit(Write, 10)
	r.wantRefused(w3, errStuck)
	delete(r.started, w1)
	r.step(Finished{w1, nil})
	w4 := r.submit(Write, 10)
	for len(r.probes) > 0 {
		r.answer(roomy, nil)
	}
	r.wantStarted(w4, true)
}

func TestAProbeThatHangsIsGivenUp(t *testing.T) {
	r := newRig(t, nil)
	w := r.submit(Write, 10)
	r.pass(2 * r.cfg.IOTimeout)
	r.wantRefused(w, errStuck)
	if r.health != Failed {
		t.Errorf("health is %v", r.health)
	}
}

func TestRedeliveryStartsNothingTwice(t *testing.T) {
	r := newRig(t, nil)
	req := Request{ID: 1, Kind: Read}
	r.reqs[1] = req
	r.step(Submit{req})
	r.step(Submit{req}) // rig fails on a second start
	running := Request{ID: 2, Kind: Read}
	r.started[2] = running
	r.step(Adopt{Req: running})
	r.step(Submit{running})
	r.finish(2, nil)
	r.step(Finished{2, nil})
	r.step(Finished{99, errGone})
	if r.health != Healthy {
		t.Errorf("a message about an unknown request made the target %v", r.health)
	}
}

// Whatever happens, every request is answered once, and when everything answers nothing is left.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		r := newRig(t, func(c *Config) {
			c.Writers, c.Readers = rapid.IntRange(1, 3).Draw(t, "writers"), rapid.IntRange(1, 3).Draw(t, "readers")
			c.IOTimeout = 100 * time.Second
		})
		pick := func(name string) (uint64, bool) {
			for id := range r.last {
				if _, ok := r.started[id+1]; ok && !r.gaveUp[id+1] && rapid.Bool().Draw(t, name) {
					return id + 1, true
				}
			}
			return 0, false
		}
		errorsOf := []error{nil, nil, ErrFull, errGone, errReadOnly, errors.New("io"), context.Canceled}
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				r.submit(Kind(rapid.IntRange(0, int(kinds)-1).Draw(t, "kind")), rapid.Uint64Range(0, 400).Draw(t, "size"))
			case 2, 3:
				if id, ok := pick("finish"); ok {
					r.finish(id, rapid.SampledFrom(errorsOf).Draw(t, "err"))
				}
			case 4:
				r.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute}).Draw(t, "time"))
			case 5:
				if len(r.probes) > 0 {
					r.answer(Capacity{Used: rapid.Uint64Range(0, 1000).Draw(t, "used"), Total: 1000}, rapid.SampledFrom(errorsOf[:5]).Draw(t, "err"))
				}
			}
		}
		for i := 0; len(r.reqs)+len(r.started) > 0; i++ {
			if i > 1000 {
				t.Fatalf("still waiting: %v, running: %v, health %v", r.reqs, r.started, r.health)
			}
			for id := range r.started {
				if r.gaveUp[id] {
					delete(r.started, id)
					r.step(Finished{id, nil})
				} else {
					r.finish(id, nil)
				}
			}
			if len(r.probes) > 0 {
				r.answer(roomy, nil)
			}
			r.pass(time.Second)
		}
		if len(r.core.known)+len(r.core.joined)+len(r.core.overdue)+len(r.core.deletes)+len(r.core.later) != 0 {
			t.Fatalf("the core still knows %v %v %v %v", r.core.known, r.core.overdue, r.core.deletes, r.core.later)
		}
	})
}
