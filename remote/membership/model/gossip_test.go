package model

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"mobula/internal/testkit"
)

func lan(nodes int, seed uint64) Config {
	return Config{Nodes: nodes, Seed: seed, Latency: time.Millisecond, Meta: 100, Rules: LAN()}
}

// outcome is when nodes gave up those that were killed at time 0, from the first to the last.
type outcome struct {
	times []time.Duration
	wrong int // given up and alive, or up again and dead
	bytes float64
}

// kill has so many of the nodes end at once after a while, and waits until the others agree.
func kill(cfg Config, kills int, limit time.Duration) (out outcome) {
	g := New(cfg)
	g.Run(int64(5*time.Second), func(Change) { out.wrong++ })
	began := g.Now()
	var sent uint64
	for n := range cfg.Nodes {
		_, b := g.Sent(n)
		sent += b
	}
	for n := range kills {
		g.Kill(n)
	}
	want := kills * (cfg.Nodes - kills)
	for g.Now() < began+int64(limit) && len(out.times) < want {
		g.Run(g.Now()+int64(100*time.Millisecond), func(c Change) {
			if c.Up || c.Other >= kills {
				out.wrong++
			} else {
				out.times = append(out.times, time.Duration(c.At-began))
			}
		})
	}
	var after uint64
	for n := range cfg.Nodes {
		_, b := g.Sent(n)
		after += b
	}
	out.bytes = float64(after-sent) / float64(cfg.Nodes) / time.Duration(g.Now()-began).Seconds()
	slices.Sort(out.times)
	return out
}

func part(times []time.Duration, share float64) time.Duration {
	return times[min(len(times)-1, int(share*float64(len(times))))]
}

func TestTheSameSeedIsTheSameRun(t *testing.T) {
	run := func(seed uint64) (all []Change) {
		g := New(lan(50, seed))
		for second := range 40 {
			switch second {
			case 3:
				g.Kill(7)
			case 5:
				g.Stop(9, 8*time.Second)
			case 6:
				g.Cut(1, 2, true)
			}
			g.Run(int64(second+1)*int64(time.Second), func(c Change) { all = append(all, c) })
		}
		return all
	}
	a, b, other := run(1), run(1), run(2)
	if len(a) < 49 || !reflect.DeepEqual(a, b) {
		t.Errorf("two runs of seed 1 have %d and %d changes", len(a), len(b))
	}
	if reflect.DeepEqual(a, other) {
		t.Error("seed 2 is the run of seed 1")
	}
}

func TestNobodyWhoLivesIsGivenUp(t *testing.T) {
	for _, seed := range testkit.Seeds(t, 5) {
		g := New(lan(100, seed))
		told := func(c Change) { t.Errorf("seed %d: %+v", seed, c) }
		for n := range 20 { // each stands still for 2 s, at times of its own
			g.Run(g.Now()+int64(time.Second), told)
			g.Stop(n, 2*time.Second)
		}
		g.Run(g.Now()+int64(60*time.Second), told)
	}
}

// Whoever stands still for long is given up, and alive again for all when it goes on.
func TestWhoeverComesBackIsAliveAgain(t *testing.T) {
	g := New(lan(30, 1))
	var down, up int
	told := func(c Change) {
		switch {
		case c.Other != 4 && c.Node != 4:
			t.Errorf("%+v", c)
		case c.Other == 4 && c.Up:
			up++
		case c.Other == 4:
			down++
		}
	}
	g.Run(int64(time.Second), told)
	g.Stop(4, 40*time.Second)
	g.Run(int64(40*time.Second), told)
	if down != 29 || up != 0 {
		t.Errorf("%d gave it up, for %d it was up again", down, up)
	}
	g.Run(int64(90*time.Second), told)
	if up != down {
		t.Errorf("%d gave it up, for %d it was up again", down, up)
	}
}

// All agree on who has died, and nobody else is given up.
func TestAllAgreeOnTheDead(t *testing.T) {
	sizes := []struct {
		nodes, kills int
		limit        time.Duration
	}{{3, 1, 20 * time.Second}, {10, 1, 20 * time.Second}, {32, 3, 40 * time.Second}, {100, 10, 60 * time.Second}}
	for _, s := range sizes {
		var all []time.Duration
		for _, seed := range testkit.Seeds(t, 10) {
			out := kill(lan(s.nodes, seed), s.kills, s.limit)
			if want := s.kills * (s.nodes - s.kills); len(out.times) != want || out.wrong > 0 {
				t.Errorf("%d nodes, seed %d: %d of %d agree after %v, %d changes are wrong", s.nodes, seed, len(out.times), want, s.limit, out.wrong)
			}
			all = append(all, out.times...)
		}
		slices.Sort(all)
		t.Logf("%4d nodes, %2d killed: given up after %v to %v, half by %v", s.nodes, s.kills, all[0], all[len(all)-1], part(all, 0.5))
	}
}

// How long it takes large clusters to agree on the death of many, and what it costs.
func TestStressLargeClustersAgree(t *testing.T) {
	for _, c := range large() {
		nodes, kills := c[0], c[1]
		out := kill(lan(nodes, 1), kills, 5*time.Minute)
		want := kills * (nodes - kills)
		if len(out.times) != want || out.wrong > 0 {
			t.Errorf("%d nodes: %d of %d agree, %d changes are wrong", nodes, len(out.times), want, out.wrong)
			continue
		}
		t.Logf("%5d nodes, %3d killed: first given up after %v, half by %v, 99 %% by %v, all by %v; %.0f bytes a second of a node", nodes, kills,
			out.times[0].Round(time.Millisecond), part(out.times, 0.5).Round(time.Millisecond), part(out.times, 0.99).Round(time.Millisecond),
			out.times[len(out.times)-1].Round(time.Millisecond), out.bytes)
	}
}

func BenchmarkKillATenth(b *testing.B) {
	for _, nodes := range []int{100, 1000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			for b.Loop() {
				kill(lan(nodes, 1), nodes/10, 5*time.Minute)
			}
		})
	}
}
