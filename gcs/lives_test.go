package gcs

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
	"mobula/internal/home/register"
	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// bench is a core that judges, with the table of homes beside it.
type bench struct {
	t       *testing.T
	core    *Core
	now     time.Duration
	beats   map[ids.Home]uint64
	home    HomeRecord // of node 3
	at      uint64     // its revision
	fenced  []remote.Life
	left    []remote.Life
	lose    int // how many compare-and-sets are lost to another judge
	answers []Reply
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, core: NewCore(), beats: make(map[ids.Home]uint64), home: HomeRecord{Row: register.Row{Home: 3, Epoch: 4}}, at: 1}
	b.appoint()
	return b
}

func (b *bench) appoint() {
	judge := membership.DefaultJudgeConfig()
	b.step(Announce{Record: NodeRecord{Home: 1, Epoch: 1}, Judge: &judge})
}

// step gives an event, and answers what the core asks the tables.
func (b *bench) step(ev Event) {
	for _, e := range slices.Clone(b.core.Step(int64(b.now), ev)) {
		switch e := e.(type) {
		case Read:
			b.step(Answered{ID: e.ID, Record: b.home, Revision: b.at})
		case Write:
			if e.ID == beatID {
				continue
			}
			if b.lose > 0 {
				b.lose--
				b.at++
			}
			if uint64(e.Revision) != b.at {
				b.step(Answered{ID: e.ID, Wrote: true, Conflict: true})
				continue
			}
			b.at++
			b.home = e.Record.(HomeRecord)
			b.step(Answered{ID: e.ID, Wrote: true, Revision: b.at})
			b.step(Changed{Bucket: Homes, Key: "3", Record: b.home, Revision: b.at})
		case Fenced:
			b.fenced = append(b.fenced, e.Life)
		case Left:
			b.left = append(b.left, e.Life)
		case Reply:
			b.answers = append(b.answers, e)
		}
	}
}

// second has these nodes and the judge beat.
func (b *bench) second(homes ...ids.Home) {
	b.now += time.Second
	for _, h := range append(homes, 1) {
		b.beats[h]++
		r := NodeRecord{Home: h, Epoch: 1, Beats: b.beats[h]}
		if h == 3 {
			r.Epoch = 4
		}
		b.step(Changed{Bucket: Nodes, Key: r.Key(), Record: r})
	}
}

// The judge of a server ends a silent life in the table of homes, for all to see; another judge may have been first.
func TestTheJudgeFencesASilentLife(t *testing.T) {
	for _, c := range []struct {
		what          string
		accused, lost bool
		seconds       int
	}{{what: "silent", seconds: 8}, {what: "accused", accused: true, seconds: 5}, {what: "another judge", lost: true, seconds: 8}} {
		b := newBench(t)
		b.second(2, 3)
		b.second(2, 3)
		if c.accused {
			b.step(Accused{By: 2, Life: remote.Life{Home: 3, Epoch: 4}})
		}
		if c.lost {
			b.lose = 2
		}
		for range c.seconds - 1 {
			b.second(2)
		}
		if b.fenced != nil {
			t.Fatalf("%s: fenced too early", c.what)
		}
		b.second(2)
		b.second(2)
		if !slices.Equal(b.fenced, []remote.Life{{Home: 3, Epoch: 4}}) || b.home.Fenced != 4 || b.home.Epoch != 4 {
			t.Errorf("%s: %v are fenced, the row is %+v", c.what, b.fenced, b.home)
		}
		rows := listed(t, b.core, b.now)
		if len(rows) != 3 || !rows[2].Dead || rows[2].Silent || rows[1].Dead {
			t.Errorf("%s: listed as %+v", c.what, rows)
		}
	}
}

// A core that follows another knows what the tables say of lives, and its heartbeats count on.
func TestAJudgeAfterARestart(t *testing.T) {
	b := newBench(t)
	b.core = NewCore()
	b.step(Changed{Bucket: Homes, Key: "3", Record: HomeRecord{Row: register.Row{Home: 3, Epoch: 4}, Fenced: 4}})
	b.step(Changed{Bucket: Nodes, Key: "3", Record: NodeRecord{Home: 3, Epoch: 4, Beats: 9}})
	b.step(Changed{Bucket: Nodes, Key: "1", Record: NodeRecord{Home: 1, Epoch: 1, Beats: 70}})
	judge := membership.DefaultJudgeConfig()
	out := b.core.Step(int64(b.now), Announce{Record: NodeRecord{Home: 1, Epoch: 1}, Judge: &judge})
	if w, ok := out[0].(Write); !ok || w.Record.(NodeRecord).Beats != 71 {
		t.Errorf("it goes on with %+v", out)
	}
	b.beats[1] = 70
	for range 20 {
		b.second(2)
	}
	if b.at != 1 {
		t.Error("a life that is over was fenced again")
	}
}

// A node that ends in order has left, and is not judged.
func TestANodeThatLeavesIsNotFenced(t *testing.T) {
	b := newBench(t)
	b.second(3)
	b.step(Changed{Bucket: Nodes, Key: "3"})
	for range 20 {
		b.second()
	}
	if !slices.Equal(b.left, []remote.Life{{Home: 3, Epoch: 4}}) || b.fenced != nil {
		t.Errorf("%v have left, %v are fenced", b.left, b.fenced)
	}
}

// Lives are fenced up to an epoch, once, and no life that has not been.
func TestFence(t *testing.T) {
	b := newBench(t)
	fence := func(epoch uint64) Reply {
		b.answers = nil
		b.step(Request{ID: 7, Op: Fence{remote.Life{Home: 3, Epoch: epoch}}})
		return b.answers[0]
	}
	if r := fence(5); !errors.Is(r.Err, errs.ErrNotFound) {
		t.Errorf("a life that has not been: %+v", r)
	}
	for range 2 {
		if r := fence(3); r.Err != nil || r.Records[0].(HomeRecord).Fenced != 3 {
			t.Errorf("an earlier life: %+v", r)
		}
	}
	if r := fence(2); r.Err != nil || b.home.Fenced != 3 {
		t.Errorf("a life before it: %+v, the row is %+v", r, b.home)
	}
	if len(b.fenced) != 1 {
		t.Errorf("told of %v", b.fenced)
	}
	// The next life keeps what is over.
	b.answers = nil
	b.step(Request{ID: 8, Op: Begin{Claim: register.Claim{Life: "next", Last: &b.home.Row}}})
	if r := b.answers[0]; r.Err != nil || b.home.Epoch != 5 || b.home.Fenced != 3 {
		t.Errorf("the next life: %+v, %+v", r, b.home)
	}
}

// Of nodes whose lives are over the last rows are kept, for a day. A row of a later life stays, and so does what is removed by another judge.
func TestNodesThatAreOverAreForgotten(t *testing.T) {
	const day = 24 * time.Hour
	b := newBench(t)
	rows := make(map[string]NodeRecord)
	show := func(r NodeRecord) {
		rows[r.Key()] = r
		b.step(Changed{Bucket: Nodes, Key: r.Key(), Record: r})
	}
	over := func(h ids.Home) {
		b.now += time.Second
		r := NodeRecord{Home: h, Epoch: 1}
		show(r)
		b.step(Changed{Bucket: Homes, Key: r.Key(), Record: HomeRecord{Row: register.Row{Home: h, Epoch: 1}, Fenced: 1}})
	}
	look := func() (removed []string) { // at the time of the judge's next look
		b.now += time.Minute
		for _, e := range slices.Clone(b.core.Step(int64(b.now), Beat{})) {
			read, ok := e.(Read)
			if !ok {
				continue
			}
			for _, e := range slices.Clone(b.core.Step(int64(b.now), Answered{ID: read.ID, Record: rows[read.Key], Revision: 9})) {
				if d, ok := e.(Delete); ok && d.Bucket == Nodes && d.Revision == 9 {
					removed = append(removed, d.Key)
					b.step(Answered{ID: d.ID, Wrote: true})
					b.step(Changed{Bucket: Nodes, Key: d.Key})
				}
			}
		}
		return removed
	}
	show(NodeRecord{Home: 2, Epoch: 1})
	for h := range ids.Home(keptDead) {
		over(10 + h)
	}
	if gone := look(); len(gone) != 0 {
		t.Errorf("of %d rows %v are removed", keptDead, gone)
	}
	over(500)
	over(501)
	rows["10"] = NodeRecord{Home: 10, Epoch: 2} // it is back, and this judge has not heard of it
	if gone := look(); !slices.Equal(gone, []string{"11"}) {
		t.Errorf("removed are %v, want the row of the one that ended first", gone)
	}
	show(rows["10"])
	if gone := look(); len(gone) != 0 {
		t.Errorf("then %v are removed", gone)
	}
	b.now += day
	if gone := look(); len(gone) != keptDead {
		t.Errorf("after a day %d are removed, want all %d", len(gone), keptDead)
	}
	if left := listed(t, b.core, b.now); len(left) != 2 || left[0].Home != 10 || left[1].Home != 2 {
		t.Errorf("left are %+v", left)
	}
}
