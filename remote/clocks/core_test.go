package clocks

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

const other ids.Home = 7

// pair is a node and another whose clock is ahead, with a network between them.
type pair struct {
	c     *Core
	now   int64
	ahead int64
}

func newPair(ahead time.Duration) *pair {
	p := &pair{c: New(), now: int64(time.Hour), ahead: int64(ahead)}
	p.c.Step(p.now, Met{Node: other})
	return p
}

// roundTrip asks the other node: the question takes there, the answer takes back.
func (p *pair) roundTrip(there, back time.Duration) {
	t := Told{Node: other, Sent: p.now}
	p.now += int64(there)
	t.Received = p.now + p.ahead
	p.now += int64(time.Millisecond)
	t.Replied = p.now + p.ahead
	p.now += int64(back)
	p.c.Step(p.now, t)
}

func (p *pair) off(t interface{ Fatal(...any) }) time.Duration {
	by, known := p.c.Ahead(other)
	if !known {
		t.Fatal("the clock is not known")
	}
	return time.Duration(by - p.ahead).Abs()
}

// Whatever round trips there were, the estimate is wrong by no more than that one of the last may be which may be wrong by the least: by half of it,
// and by what clocks run apart since.
func TestTheBestRoundTripCounts(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		p := newPair(time.Duration(rapid.Int64Range(-int64(2*time.Hour), int64(2*time.Hour)).Draw(rt, "ahead")))
		apart := rapid.Int64Range(-500, 500).Draw(rt, "parts in a million by which the other clock runs faster")
		type trip struct {
			took time.Duration
			at   int64
		}
		var last []trip
		for range rapid.IntRange(1, 20).Draw(rt, "trips") {
			pause := rapid.Int64Range(0, int64(time.Minute)).Draw(rt, "pause")
			p.now += pause
			p.ahead += pause * apart / 1e6
			there := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "there"))
			back := time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(rt, "back"))
			p.roundTrip(there, back)
			if last = append(last, trip{there + back, p.now}); len(last) > window {
				last = last[1:]
			}
			least := time.Duration(math.MaxInt64)
			for _, d := range last {
				least = min(least, d.took/2+time.Duration(drift*float64(p.now-d.at)))
			}
			if off := p.off(rt); off > least+window {
				rt.Fatalf("the estimate is wrong by %v, the best round trip by %v at most", off, least)
			}
		}
	})
}

// The first message of the other node tells the time well enough for those that come with it.
func TestBeforeTheFirstAnswerTheQuestionOfTheOtherNodeCounts(t *testing.T) {
	p := newPair(time.Hour)
	if _, known := p.c.Ahead(other); known {
		t.Error("the clock is known before anything was heard")
	}
	sent := p.now + p.ahead
	p.now += int64(3 * time.Millisecond)
	p.c.Step(p.now, Asked{Node: other, Sent: sent})
	if off := p.off(t); off != 3*time.Millisecond {
		t.Errorf("wrong by %v", off)
	}
	p.roundTrip(time.Millisecond, time.Millisecond)
	p.c.Step(p.now+int64(time.Second), Asked{Node: other, Sent: p.now + p.ahead})
	if off := p.off(t); off != 0 {
		t.Errorf("after a round trip it is wrong by %v", off)
	}
}

// A clock that was moved is believed at the first round trip that shows it, though it is a long one.
func TestAClockThatMovedIsMeasuredAnew(t *testing.T) {
	p := newPair(0)
	for range window {
		p.roundTrip(100*time.Microsecond, 100*time.Microsecond)
	}
	p.ahead = -int64(time.Minute)
	p.roundTrip(time.Second, time.Second)
	if off := p.off(t); off > time.Second {
		t.Errorf("wrong by %v", off)
	}
	p.c.Step(p.now, Told{Node: other, Sent: p.now + 5, Received: 1, Replied: 2}) // no such answer can be
	p.c.Step(p.now, Told{Node: other, Sent: p.now - 9, Received: 9, Replied: 2})
	if off := p.off(t); off > time.Second {
		t.Errorf("after nonsense it is wrong by %v", off)
	}
}

// Clocks that run apart a little are no clocks that were moved: the shortest round trip goes on counting until it is old.
func TestDriftIsFollowed(t *testing.T) {
	p := newPair(0)
	p.roundTrip(0, 0)
	for range 100 {
		p.now += int64(rarely)
		p.ahead += int64(50e-6 * float64(rarely))
		p.roundTrip(100*time.Microsecond, 300*time.Microsecond)
		if off := p.off(t); off > 5*time.Millisecond {
			t.Fatalf("wrong by %v", off)
		}
	}
}

// A round trip of an hour ago says less than one of now, though that takes longer: the clocks have run apart since.
func TestAnOldRoundTripGivesWay(t *testing.T) {
	p := newPair(0)
	for range window {
		p.roundTrip(10*time.Microsecond, 10*time.Microsecond)
	}
	p.now += int64(time.Hour)
	p.ahead += int64(50e-6 * float64(time.Hour))
	p.roundTrip(100*time.Microsecond, 300*time.Microsecond)
	if off := p.off(t); off > time.Millisecond {
		t.Errorf("wrong by %v", off)
	}
}

// A node is asked at once, a few times in a row when its time is needed, and then rarely; one that nobody needs, or that is gone, is not.
func TestWhenANodeIsAsked(t *testing.T) {
	c, now := New(), int64(0)
	if asks := c.Step(now, Met{Node: other}); len(asks) != 1 || asks[0].Node != other {
		t.Fatalf("at first: %v", asks)
	}
	if asks := c.Step(now, Met{Node: other}); asks != nil {
		t.Errorf("met twice: %v", asks)
	}
	asked := func(ev Event) (n int) {
		for range 100 {
			now += int64(time.Second)
			n += len(c.Step(now, ev))
		}
		return n
	}
	if n := asked(Tick{}); n != 0 {
		t.Errorf("in 100 s in which nobody needs its time it is asked %d times", n)
	}
	if n := asked(Tick{Needed: []ids.Home{other}}); n < eager+10 || n > eager+13 {
		t.Errorf("in 100 s it is asked %d times", n)
	}
	now += int64(rarely)
	if asks := c.Step(now, Needed{Node: other}); len(asks) != 1 || asks[0].Node != other {
		t.Errorf("when its time is needed once: %v", asks)
	}
	if asks := c.Step(now, Needed{Node: other}); asks != nil {
		t.Errorf("when it is needed once more: %v", asks)
	}
	c.Step(now, Gone{Node: other})
	if n := asked(Tick{Needed: []ids.Home{other}}) + len(c.Step(now, Needed{Node: other})); n != 0 {
		t.Errorf("one that is gone is asked %d times", n)
	}
	if _, known := c.Ahead(other); known {
		t.Error("the clock of one that is gone is known")
	}
	c.Step(now, Told{Node: other}) // late
	c.Step(now, Asked{Node: other, Sent: 1})
}
