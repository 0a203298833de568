package membership

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
)

func load(home ids.Home, epoch, version uint64, text string) Load {
	return Load{Life: life(home, epoch), Version: version, Bytes: []byte(text)}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		m any
		b []byte
	}{
		{load(3, 2, 9, "busy"), load(3, 2, 9, "busy").Message()},
		{Goodbye{life(3, 2)}, Goodbye{life(3, 2)}.Message()},
	} {
		got, err := ParseMessage(c.b)
		if err != nil || !reflect.DeepEqual(got, c.m) {
			t.Errorf("%+v, %v", got, err)
		}
		clear(c.b) // the gossip uses its buffers again
		if !reflect.DeepEqual(got, c.m) {
			t.Errorf("%+v is not a copy", got)
		}
	}
	for _, b := range [][]byte{nil, {0}, {9, 1, 1}, {kindLoad}, {kindLoad, 1, 0, 1}, {kindLoad, 1, 1, 0}, {kindGoodbye, 1}, load(1, 1, 1, string(make([]byte, MaxLoad+1))).Message()} {
		if got, err := ParseMessage(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%v: %+v, %v", b, got, err)
		}
	}
}

func TestTheLatestLoadIsKept(t *testing.T) {
	loads := NewLoads()
	for _, c := range []struct {
		l    Load
		news bool
	}{
		{load(3, 1, 5, "a"), true}, {load(3, 1, 5, "b"), false}, {load(3, 1, 4, "b"), false}, {load(3, 2, 1, "c"), true}, {load(3, 1, 9, "d"), false}, {load(1, 1, 1, "e"), true},
	} {
		if got := loads.Offer(c.l); got != c.news {
			t.Errorf("%+v is news: %t", c.l, got)
		}
	}
	want := []Load{load(1, 1, 1, "e"), load(3, 2, 1, "c")}
	if got := loads.All(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got, err := ParseSnapshot(loads.Snapshot(1 << 20)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseSnapshot(loads.Snapshot(15)); err != nil || !reflect.DeepEqual(got, want[:1]) {
		t.Errorf("of 15 bytes: %+v, %v", got, err)
	}

	if loads.End(life(3, 1)) || !loads.End(life(3, 2)) || loads.End(life(3, 2)) || !loads.Ended(life(3, 1)) || loads.Ended(life(3, 3)) || loads.Ended(life(1, 1)) {
		t.Error("who is over is wrong")
	}
	if loads.Offer(load(3, 2, 7, "late")) || !slices.EqualFunc(loads.All(), want[:1], func(a, b Load) bool { return a.Life == b.Life }) {
		t.Errorf("after the end: %+v", loads.All())
	}
	if !loads.Offer(load(3, 3, 1, "again")) {
		t.Error("the next life has no load")
	}
}

func FuzzSnapshot(f *testing.F) {
	loads := NewLoads()
	loads.Offer(load(1, 1, 1, "e"))
	loads.Offer(load(3, 2, 1, "c"))
	f.Add(loads.Snapshot(1 << 20))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := ParseSnapshot(b)
		if err != nil && !errors.Is(err, ErrMessage) {
			t.Error(err)
		}
		again := NewLoads()
		for _, l := range got {
			again.Offer(l)
		}
		if parsed, err := ParseSnapshot(again.Snapshot(1 << 30)); err != nil || !reflect.DeepEqual(parsed, again.All()) && len(parsed) > 0 {
			t.Errorf("%+v, then %+v, %v", got, parsed, err)
		}
	})
}

// What all nodes' loads cost a node stays within the budget, however many nodes there are.
func TestLoadsStayWithinTheBudget(t *testing.T) {
	p := DefaultPace()
	var last time.Duration
	for _, nodes := range []int{1, 3, 10, 100, 1000, 10000} {
		d := p.Interval(nodes, 150)
		bytes := float64(nodes) * Fanout * float64(len(load(ids.MaxHome, 9, 1<<30, string(make([]byte, 150))).Message())+3) / d.Seconds()
		t.Logf("%5d nodes: a load each %v, %.0f bytes a second", nodes, d.Round(time.Millisecond), bytes)
		if bytes > float64(p.Budget) || d < p.Min || d < last {
			t.Errorf("%d nodes: every %v, %.0f bytes a second", nodes, d, bytes)
		}
		last = d
	}
}

// Of reports that come faster than the pace the last one is spread.
func TestReportsAreSpacedOut(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	spread := func(ev Event) (out []uint64) {
		for _, f := range s.others(ev) {
			out = append(out, f.(Spread).Load.Version)
			if f.(Spread).Load.Life != life(1, 1) || !bytes.Equal(f.(Spread).Load.Bytes, []byte{byte(f.(Spread).Load.Version)}) {
				t.Errorf("%+v", f)
			}
		}
		return out
	}
	report := func(v uint64) Report { return Report{Version: v, Bytes: []byte{byte(v)}} }
	for _, c := range []struct {
		pass time.Duration
		ev   Event
		want []uint64
	}{
		{0, report(1), []uint64{1}}, {0, report(2), nil}, {time.Second / 2, report(3), nil}, {0, report(2), nil}, {time.Second / 2, Timer{}, []uint64{3}},
		{10 * time.Second, Timer{}, nil}, {0, report(4), []uint64{4}},
	} {
		s.pass(c.pass)
		if got := spread(c.ev); !slices.Equal(got, c.want) {
			t.Errorf("%T%+v: %v is spread, want %v", c.ev, c.ev, got, c.want)
		}
	}
	for _, c := range []struct {
		l    Load
		told bool
	}{{load(2, 1, 1, "a"), true}, {load(2, 1, 1, "a"), false}, {load(2, 1, 2, "b"), true}, {load(2, 2, 1, "c"), true}, {load(2, 1, 3, "d"), false}} {
		told := slices.ContainsFunc(s.step(Gossiped{c.l}), func(f Effect) bool { _, ok := f.(LoadReceived); return ok })
		if told != c.told {
			t.Errorf("%+v told: %t", c.l, told)
		}
	}
}
