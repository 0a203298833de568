package gcs

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// Heartbeats wait for each other, the last of each life and home, whatever order they come in.
func TestHeartbeatsWaitTogether(t *testing.T) {
	h := NewHeartbeats()
	for _, b := range []Heartbeat{{2, 1, 2}, {1, 1, 2}, {2, 1, 3}, {2, 1, 1}, {3, 2, 1}, {3, 1, 9}, {4, 1, 9}, {4, 2, 1}} {
		h.Add(b)
	}
	if got, want := h.Take(), []Heartbeat{{1, 1, 2}, {2, 1, 3}, {3, 2, 1}, {4, 2, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v wait, want %v", got, want)
	}
	if again := h.Take(); len(again) != 0 {
		t.Errorf("and then %v", again)
	}
}

// Heartbeats are told no more often than the size of the cluster allows.
func TestHeartbeatsAreToldNowAndThen(t *testing.T) {
	const now = int64(time.Minute)
	h := NewTold()
	h.Add(Heartbeat{2, 1, 3})
	for _, w := range []struct {
		what string
		at   int64
		want []Heartbeat
	}{
		{"at once", now, []Heartbeat{{2, 1, 3}}}, {"and no more", now + int64(time.Hour), nil}, {"too soon", now + int64(HeartbeatsEvery/4), nil},
		{"later", now + int64(HeartbeatsEvery), []Heartbeat{{2, 1, 4}}},
	} {
		if got := h.Due(w.at, 3); !slices.Equal(got, w.want) {
			t.Errorf("%s: %v, want %v", w.what, got, w.want)
		}
		if w.what == "and no more" {
			h.Add(Heartbeat{2, 1, 4})
		}
	}
}

// However many nodes there are, the heartbeats of all of them cost each a bounded number of bytes a second.
func TestHeartbeatsCostABoundedRate(t *testing.T) {
	for _, nodes := range []int{3, 300, 1000, 10_000, 100_000} {
		rate := float64(nodes*heartbeatSize) / heartbeatsPause(nodes).Seconds()
		if rate > heartbeatsRate || heartbeatsPause(nodes) < HeartbeatsEvery {
			t.Errorf("%d nodes: every %v, %.0f bytes a second", nodes, heartbeatsPause(nodes), rate)
		}
	}
}

// A row follows the heartbeats of its own life, forwards.
func TestARowFollowsItsLife(t *testing.T) {
	row := NodeRecord{Home: 2, Epoch: 3, Beats: 7, Name: "n2"}
	for b, later := range map[Heartbeat]bool{{2, 3, 8}: true, {2, 3, 7}: false, {2, 3, 6}: false, {2, 2, 8}: false, {2, 4, 8}: false, {1, 3, 8}: false} {
		want := row
		if later {
			want.Beats = b.Number()
		}
		if got, is := row.Beat(b); is != later || !reflect.DeepEqual(got, want) {
			t.Errorf("after %v it is %+v, %v", b, got, is)
		}
	}
}

// A row of heartbeats is read as it was written.
func TestARowOfHeartbeats(t *testing.T) {
	r := BeatsRecord{Server: "a server", Beats: []Heartbeat{{1, 1, 7}, {2, 4, 1 << 40}}}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"server":"a server","beats":[[1,1,7],[2,4,1099511627776]]}`; string(text) != want {
		t.Errorf("it is written as %s, want %s", text, want)
	}
	if got, err := ParseRecord(Beats, text); err != nil || !reflect.DeepEqual(got, Record(r)) || got.Key() != encode("a server") || got.Bucket() != Beats {
		t.Errorf("%+v, %v", got, err)
	}
}

// A node tells its heartbeats, and nobody answers. Its row is written at first, and whenever the table has another one; that a write takes long, or fails, delays no
// heartbeat.
func TestANodeTellsHeartbeats(t *testing.T) {
	const every = time.Second
	c := NewCore()
	now, beats := time.Duration(0), uint64(0)
	var wrote NodeRecord
	step := func(ev Event) []Effect { return slices.Clone(c.Step(int64(now), ev)) }
	beat := func(what string, ev Event, writes bool) {
		t.Helper()
		now += every
		beats++
		out := step(ev)
		if writes {
			w, _ := out[0].(Write)
			var ok bool
			if wrote, ok = w.Record.(NodeRecord); !ok || wrote.Beats != beats || w.Revision != -1 {
				t.Fatalf("%s: %+v", what, out)
			}
			out = out[1:]
		}
		if want := []Effect{TellBeat{Heartbeat{2, 3, beats}}, After{every * 5 / 4, Beat{}}}; !slices.Equal(out, want) {
			t.Fatalf("%s: %+v, want %+v", what, out, want)
		}
	}
	silent := func(ev Event) {
		t.Helper()
		for _, e := range step(ev) {
			switch e.(type) {
			case Heard, Left:
			default:
				t.Fatalf("%+v: it asks for %+v", ev, e)
			}
		}
	}
	written, failed := Answered{Wrote: true, Revision: 5}, Answered{Wrote: true, Err: errors.New("the tables are away")}
	shown := func(r NodeRecord) Changed { return Changed{Bucket: Nodes, Key: r.Key(), Record: r, Revision: 5} }

	beat("at first", Announce{Record: NodeRecord{Home: 2, Epoch: 3}, Every: every, Tells: true}, true)
	beat("without an answer", Beat{}, false)
	silent(failed)
	beat("not written", Beat{}, true)
	silent(written)
	silent(shown(wrote))
	beat("written", Beat{}, false)
	beat("and on", Beat{}, false)

	silent(Follows{Number: 9})
	beat("with another bundle", Beat{}, true)
	if wrote.Trust != 9 {
		t.Errorf("it writes %+v", wrote)
	}
	silent(Follows{Number: 10}) // before the answer
	silent(written)
	beat("with the next bundle", Beat{}, true)
	silent(written)
	silent(shown(wrote))
	beat("with that", Beat{}, false)
	old := wrote
	old.Trust = 9
	silent(shown(old))
	beat("a row from before", Beat{}, true)
	silent(written)

	silent(Changed{Bucket: Nodes, Key: "2", Revision: 8})
	beat("a row that is gone", Beat{}, true)
	silent(written)
	silent(shown(NodeRecord{Home: 2, Epoch: 2, Beats: 100, Trust: 10}))
	beat("a row of the life before", Beat{}, true)
	silent(written)
	silent(shown(NodeRecord{Home: 2, Epoch: 4, Beats: 1}))
	beat("a row of the next life", Beat{}, false)
	silent(Changed{Bucket: Nodes, Key: "3", Revision: 11})
	beat("another node has left", Beat{}, false)
}

// A node beats when its last heartbeat is shown to it, if it is about time, and else by its own clock: once a second either way.
func TestANodeBeatsWhenItIsShown(t *testing.T) {
	const every = time.Second
	c := NewCore()
	c.Step(0, Announce{Record: NodeRecord{Home: 2, Epoch: 3}, Every: every, Tells: true})
	c.Step(0, Answered{Wrote: true, Revision: 5})
	c.Step(0, Changed{Bucket: Nodes, Key: "2", Record: NodeRecord{Home: 2, Epoch: 3, Beats: 1}, Revision: 5})
	shown := func(beats uint64) Event {
		return Changed{Bucket: Nodes, Key: "2", Record: NodeRecord{Home: 2, Epoch: 3, Beats: beats}, Revision: 5}
	}
	for _, s := range []struct {
		what  string
		at    time.Duration
		ev    Event
		beats uint64 // told; 0: none
	}{
		{"shown too soon", every / 2, shown(1), 0},
		{"shown in time", every, shown(1), 2},
		{"the timer of before", every, Beat{}, 0},
		{"shown again", every * 5 / 4, shown(2), 0},
		{"shown to other nodes", every * 2, Changed{Bucket: Nodes, Key: "3", Record: NodeRecord{Home: 3, Epoch: 1}, Revision: 6}, 0},
		{"not shown", every * 9 / 4, Beat{}, 3},
		{"in the servers' rows", every * 13 / 4, Changed{Bucket: Beats, Key: "a", Record: BeatsRecord{Beats: []Heartbeat{{2, 3, 3}}}}, 4},
	} {
		var told []Heartbeat
		for _, e := range c.Step(int64(s.at), s.ev) {
			switch e := e.(type) {
			case TellBeat:
				told = append(told, e.Heartbeat)
			case After:
				if e != (After{every * 5 / 4, Beat{}}) || s.beats == 0 {
					t.Errorf("%s: it waits as in %+v", s.what, e)
				}
			}
		}
		if want := (Heartbeat{2, 3, s.beats}); s.beats == 0 && len(told) > 0 || s.beats > 0 && !slices.Equal(told, []Heartbeat{want}) {
			t.Errorf("%s: it tells %v, want the number %d", s.what, told, s.beats)
		}
	}
}

// A node without an interval of heartbeats has none when its row is shown.
func TestNoHeartbeatWithoutAnInterval(t *testing.T) {
	c := NewCore()
	c.Step(0, Announce{Record: NodeRecord{Home: 2, Epoch: 3}, Tells: true})
	for _, e := range c.Step(int64(time.Minute), Changed{Bucket: Nodes, Key: "2", Record: NodeRecord{Home: 2, Epoch: 3, Beats: 1}, Revision: 5}) {
		if _, heard := e.(Heard); !heard {
			t.Errorf("it asks for %+v", e)
		}
	}
}

// A core that follows another goes on with the number of heartbeats that the servers have written.
func TestHeartbeatsCountOn(t *testing.T) {
	c := NewCore()
	c.Step(0, Changed{Bucket: Nodes, Key: "2", Record: NodeRecord{Home: 2, Epoch: 3, Beats: 1}})
	c.Step(0, Changed{Bucket: Beats, Key: "a", Record: BeatsRecord{Server: "a", Beats: []Heartbeat{{2, 3, 70}}}})
	out := c.Step(0, Announce{Record: NodeRecord{Home: 2, Epoch: 3}, Every: time.Second, Tells: true})
	if w, ok := out[0].(Write); !ok || w.Record.(NodeRecord).Beats != 71 {
		t.Errorf("it goes on with %+v", out)
	}
}

// Whoever watches the tables hears the nodes by the rows of heartbeats: those of lives whose rows are there, once each.
func TestRowsOfHeartbeatsAreHeard(t *testing.T) {
	c := NewCore()
	for _, r := range []NodeRecord{{Home: 1, Epoch: 1, Name: "me"}, {Home: 2, Epoch: 3, Name: "n2", Beats: 5}} {
		c.Step(0, Changed{Bucket: Nodes, Key: r.Key(), Record: r})
	}
	c.Step(0, Announce{Record: NodeRecord{Home: 1, Epoch: 1, Name: "me"}, Every: time.Second, Tells: true})
	heard := func(now time.Duration, beats ...Heartbeat) (out []Heartbeat) {
		for _, e := range c.Step(int64(now), Changed{Bucket: Beats, Key: "a", Record: BeatsRecord{Server: "a", Beats: beats}}) {
			if h, ok := e.(Heard); ok {
				out = append(out, h.Record.Heartbeat())
			}
		}
		return out
	}
	if got := heard(time.Minute, Heartbeat{1, 1, 1}, Heartbeat{2, 3, 6}, Heartbeat{3, 1, 1}); !slices.Equal(got, []Heartbeat{{1, 1, 1}, {2, 3, 6}}) {
		t.Errorf("it hears %v", got)
	}
	if got := heard(time.Hour, Heartbeat{2, 3, 6}, Heartbeat{2, 2, 8}, Heartbeat{2, 4, 1}); len(got) != 0 {
		t.Errorf("of what is old, or of other lives, it hears %v", got)
	}
	rows := listed(t, c, time.Minute+2*time.Second)
	if len(rows) != 2 || rows[1].Silent || rows[1].Heard != 2*time.Second || rows[1].Beats != 6 || rows[1].Name != "n2" {
		t.Errorf("it lists %+v", rows)
	}
	c.Step(0, Changed{Bucket: Beats, Key: "a"}) // nobody's
	c.Step(0, Changed{Bucket: Nodes, Key: "2"})
	if got := heard(time.Minute, Heartbeat{2, 3, 7}); len(got) != 0 {
		t.Errorf("of a node that has left it hears %v", got)
	}
}

// gathered is a server that judges, and the server beside it; the nodes of both beat at times of their own.
type gathered struct {
	core  *Core
	waits [2]*Heartbeats
	last  map[ids.Home]uint64
	over  map[ids.Home]time.Duration
}

func newGathered(nodes int) *gathered {
	g := &gathered{core: NewCore(), waits: [2]*Heartbeats{NewHeartbeats(), NewHeartbeats()}, last: make(map[ids.Home]uint64), over: make(map[ids.Home]time.Duration)}
	for home := range ids.Home(nodes) {
		g.core.Step(0, Changed{Bucket: Nodes, Key: (home + 1).String(), Record: NodeRecord{Home: home + 1, Epoch: 1}})
	}
	judge := membership.DefaultJudgeConfig()
	g.core.Step(0, Announce{Record: NodeRecord{Home: 1, Epoch: 1}, Every: time.Second, Tells: true, Judge: &judge})
	return g
}

func (g *gathered) beat(home ids.Home) {
	g.last[home]++
	g.waits[home%2].Add(Heartbeat{uint64(home), 1, g.last[home]})
}

// write shows what one of the servers has gathered.
func (g *gathered) write(server int, now time.Duration) {
	out := g.core.Step(int64(now), Changed{Bucket: Beats, Key: string(rune('a' + server)), Record: BeatsRecord{Beats: g.waits[server].Take()}})
	for _, e := range slices.Clone(out) {
		if r, ok := e.(Read); ok { // the first step of a Fence
			home := ids.Home(r.ID &^ fenceBit)
			g.core.Step(int64(now), Changed{Bucket: Homes, Key: home.String(), Record: HomeRecord{Fenced: 1}})
			g.core.lives.judge.Ended(remote.Life{Home: home, Epoch: 1})
			g.over[home] = now
		}
	}
}

// A judge that is shown heartbeats together, a second late, ends a life within ten seconds of its last heartbeat, and not within seven; and nobody else's.
func TestGatheredHeartbeatsAreJudgedInTime(t *testing.T) {
	const tick = 100 * time.Millisecond
	for phase := range 10 { // when the nodes beat, within the servers' second
		g := newGathered(9)
		died := 20*time.Second + time.Duration(phase)*tick
		for now := time.Duration(0); now < time.Minute; now += tick {
			for home := range ids.Home(9) {
				lives := now <= died || home+1 != 4 && home+1 != 5
				if (int(now/tick)+int(home)+phase)%10 == 0 && lives {
					g.beat(home + 1)
				}
			}
			if now%time.Second == 0 {
				g.write(1, now)
			}
			if now%time.Second == 3*tick {
				g.write(0, now)
			}
		}
		if len(g.over) != 2 {
			t.Errorf("phase %d: over are %v", phase, g.over)
		}
		for home, at := range g.over {
			if after := at - died; after < 7*time.Second || after > 10*time.Second {
				t.Errorf("phase %d: the end of node %v is known %v after it", phase, home, after)
			}
		}
	}
}

// A node that is stopped for two seconds is not declared dead, even if another one does not hear it, at whatever moment it is stopped.
func TestAStopOfTwoSecondsEndsNobody(t *testing.T) {
	const tick = 100 * time.Millisecond
	for phase := range 20 {
		g := newGathered(3)
		for now := time.Duration(0); now < 20*time.Second; now += tick {
			stopped := 5*time.Second + time.Duration(phase)*tick
			for home := range ids.Home(3) {
				silent := home+1 == 3 && now >= stopped && now < stopped+2*time.Second
				if (int(now/tick)+3*int(home))%10 == 0 && !silent {
					g.beat(home + 1)
				}
			}
			if now == stopped {
				g.core.Step(int64(now), Accused{By: 2, Life: remote.Life{Home: 3, Epoch: 1}})
			}
			if now%time.Second == 0 {
				g.write(1, now)
			}
			if now%time.Second == 6*tick {
				g.write(0, now)
			}
		}
		if len(g.over) != 0 {
			t.Errorf("phase %d: over are %v", phase, g.over)
		}
	}
}
