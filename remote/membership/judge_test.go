package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote"
)

// court is a judge on node 1 with other nodes that write heartbeats into one ordered table.
type court struct {
	j     *Judge
	now   int64
	beats map[ids.Home]uint64
	over  []remote.Life
}

func newCourt() *court {
	return &court{j: NewJudge(DefaultJudgeConfig(), life(1, 1)), beats: make(map[ids.Home]uint64)}
}

// second lets a second pass, in which the judge and these nodes beat.
func (c *court) second(homes ...ids.Home) {
	c.now += int64(time.Second)
	for _, h := range homes {
		c.beats[h]++
		c.j.Heard(c.now, life(h, 1), c.beats[h])
	}
	c.beats[1]++
	c.over = append(c.over, c.j.Heard(c.now, life(1, 1), c.beats[1])...)
}

func TestASilentLifeEndsWithItsLease(t *testing.T) {
	for accused, want := range map[bool]int{false: 8, true: 5} {
		c := newCourt()
		c.second(2, 3)
		c.second(2, 3)
		if accused {
			c.j.Accused(c.now, 2, life(3, 1))
			c.j.Accused(c.now, 2, life(3, 2)) // nobody
		}
		for range want - 1 {
			c.second(2)
		}
		if c.over != nil {
			t.Errorf("accused %t: over too early: %v", accused, c.over)
		}
		c.second(2)
		c.second(2)
		if !slices.Equal(c.over, []remote.Life{life(3, 1), life(3, 1)}) {
			t.Errorf("accused %t: %v are over, want node 3, until it is fenced", accused, c.over)
		}
		c.j.Ended(life(3, 1))
		c.over = nil
		c.j.Heard(c.now, life(3, 1), 99) // an old row
		for range 20 {
			c.second(2)
		}
		if c.over != nil {
			t.Errorf("accused %t: after the end %v", accused, c.over)
		}
	}
}

// The judge's own heartbeats come a little early or late: that is no reason to wait for one more.
func TestALeaseEndsWhenItsHeartbeatsAreEarly(t *testing.T) {
	for early := range int64(200) {
		c := newCourt()
		c.second(2, 3)
		for range 7 {
			c.second(2)
		}
		if c.now -= early * int64(time.Millisecond); c.over != nil {
			t.Fatalf("over too early: %v", c.over)
		}
		if c.second(2); !slices.Equal(c.over, []remote.Life{life(3, 1)}) {
			t.Fatalf("%d ms early: %v are over, want node 3", early, c.over)
		}
	}
}

// What the judge's own node does not hear counts for nothing: it may be the one that is cut off, and then nobody else misses the others.
func TestTheJudgesOwnNodeAccusesNobody(t *testing.T) {
	c := newCourt()
	c.second(2, 3)
	c.second(2, 3)
	c.j.Accused(c.now, 1, life(2, 1))
	c.j.Accused(c.now, 1, life(3, 1))
	for range 7 {
		c.second()
	}
	if c.over != nil {
		t.Errorf("%v are over", c.over)
	}
	c.second(2, 3)
	if c.second(2, 3); c.over != nil {
		t.Errorf("%v are over, which were heard again", c.over)
	}
}

// An accusation is answered by a heartbeat.
func TestAHeartbeatAnswersAnAccusation(t *testing.T) {
	c := newCourt()
	c.second(2)
	for range 10 {
		c.j.Accused(c.now, 2, life(2, 1))
		for range 3 {
			c.second()
		}
		c.second(2)
	}
	for range 7 {
		c.second()
	}
	if c.over != nil {
		t.Errorf("%v are over", c.over)
	}
}

// A heartbeat that is shown within a second of an accusation may be older than that, and is no answer: the life ends five seconds after it.
func TestAHeartbeatOfBeforeIsNoAnswer(t *testing.T) {
	for late, want := range map[time.Duration]int{100 * time.Millisecond: 5, 900 * time.Millisecond: 5, 1100 * time.Millisecond: 8} {
		c := newCourt()
		c.second(2, 3)
		c.second(2, 3)
		c.j.Accused(c.now, 2, life(3, 1))
		if late > time.Second {
			c.second(2)
			late -= time.Second
		}
		c.now += int64(late)
		c.j.Heard(c.now, life(3, 1), c.beats[3]+1)
		for range want - 1 {
			c.second(2)
		}
		if c.over != nil {
			t.Errorf("shown after %v: over too early: %v", late, c.over)
		}
		c.second(2)
		if !slices.Equal(c.over, []remote.Life{life(3, 1)}) {
			t.Errorf("shown after %v: %v are over, want node 3", late, c.over)
		}
	}
}

// The watch shows old rows again when it begins again: they are no heartbeats.
func TestAnOldRowIsNoHeartbeat(t *testing.T) {
	c := newCourt()
	c.second(2)
	for range 8 {
		c.j.Heard(c.now, life(2, 1), c.beats[2])
		c.second()
	}
	if !slices.Equal(c.over, []remote.Life{life(2, 1)}) {
		t.Errorf("%v are over", c.over)
	}
}

// A node that lives is not declared dead: not if it is stopped for 2 s or writes late, not if the judge is stopped, not if the tables
// are, for however long. One that is dead is declared dead, once the judge has heard itself for as long as the lease.
func TestOnlyTheSilentAreDead(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 300) {
		if wrong := trial(seed); wrong != "" {
			t.Fatalf("seed %d: %s", seed, wrong)
		}
	}
}

// trial has node 4 die among nodes that live and a judge that is disturbed, and tells what is wrong with the verdicts.
func trial(seed uint64) string {
	const ms = int64(time.Millisecond)
	type row struct {
		home ids.Home
		beat uint64
	}
	random := rand.New(rand.NewPCG(seed, 1))
	cfg := DefaultJudgeConfig()
	j := NewJudge(cfg, life(1, 1))
	var (
		waiting []row // written, and not shown to the judge: in order
		stall   int64 // until then nothing is shown, and the judge writes nothing
		last    int64 // when the judge last heard itself
		heard   int64 // how long it has heard itself since the death
	)
	beat := make(map[ids.Home]uint64)
	next := map[ids.Home]int64{1: 1, 2: 1, 3: 1, 4: 1}
	death := (1 + random.Int64N(60)) * 1000 * ms
	for now := int64(0); now < death+300_000*ms; now += 10 * ms {
		if now >= stall && random.IntN(3000) == 0 {
			stall = now + (1+random.Int64N(60_000))*ms
		}
		for home := ids.Home(1); home <= 4; home++ {
			if now < next[home] || home == 4 && now >= death || home == 1 && now < stall {
				continue
			}
			beat[home]++
			waiting = append(waiting, row{home, beat[home]})
			pause := int64(1000)
			if random.IntN(10) == 0 { // it was stopped, or short of processor
				pause += random.Int64N(2000)
			}
			next[home] = now + pause*ms
			if random.IntN(20) == 0 {
				j.Accused(now, 2, life(2+ids.Home(random.IntN(3)), 1))
			}
		}
		if now < stall {
			continue
		}
		for _, r := range waiting {
			for _, l := range j.Heard(now, life(r.home, 1), r.beat) {
				if l.Home != 4 || now < death {
					return fmt.Sprintf("%v is declared dead at %v ms, node 4 died at %v", l, now/ms, death/ms)
				}
				return ""
			}
			if r.home == 1 {
				if last >= death {
					heard += min(now-last, int64(cfg.Beat))
				}
				last = now
			}
		}
		waiting = waiting[:0]
		if heard > int64(cfg.Lease+3*cfg.Beat) {
			return fmt.Sprintf("node 4 is dead for %v ms of the judge's time, and nobody has said so", heard/ms)
		}
	}
	return "the judge was never well for long enough"
}
