package membership

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"mobula/internal/ids"
)

// The control plane is asked until it has decided, less and less often.
func TestADoubtedLifeIsAccusedUntilThereIsAVerdict(t *testing.T) {
	s := newScript(t)
	s.step(Seen{node(2, 1)})
	accuse := func(why Reason) []Effect { return []Effect{Accuse{life(2, 1), why}} }
	if got := s.others(Broken{life(2, 1)}); !reflect.DeepEqual(got, accuse(Disconnected)) {
		t.Fatal(show(got))
	}
	if got := s.others(Failed{life(2, 1)}); got != nil {
		t.Fatal("asked twice at once:", show(got))
	}
	for _, gap := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		s.pass(gap*time.Second - 1)
		if got := s.others(Timer{}); got != nil {
			t.Fatal("too early:", show(got))
		}
		s.pass(1)
		if got := s.others(Timer{}); !reflect.DeepEqual(got, accuse(Unheard)) {
			t.Fatalf("after %v s: %s", int64(gap), show(got))
		}
	}
	s.step(Fenced{life(2, 1)})
	s.pass(time.Hour)
	if got := s.others(Timer{}); got != nil {
		t.Fatal("after the verdict:", show(got))
	}
}

func TestALifeThatIsTrustedAgainIsNotAccused(t *testing.T) {
	for _, ev := range []Event{Connected{life(2, 1)}, Leaving{life(2, 1)}, Seen{node(2, 2)}} {
		s := newScript(t)
		s.step(Seen{node(2, 1)})
		s.step(Broken{life(2, 1)})
		s.step(ev)
		s.pass(time.Hour)
		if got := s.others(Timer{}); got != nil {
			t.Errorf("after %T: %s", ev, show(got))
		}
	}
}

// Whatever dies at once, a node asks no more than so often, and about each in the end.
func TestQuestionsAreBounded(t *testing.T) {
	const n = 100
	s := newScript(t)
	for h := ids.Home(2); h < n+2; h++ {
		s.step(Seen{node(h, 1)})
	}
	asked := make(map[ids.Home]bool)
	window := 0
	count := func(fx []Effect) {
		for _, f := range fx {
			asked[f.(Accuse).Life.Home] = true
			window++
		}
	}
	for h := ids.Home(2); h < n+2; h++ {
		count(s.others(Failed{life(h, 1)}))
	}
	for second := 0; ; second++ {
		if window > s.c.cfg.AccuseBurst {
			t.Fatalf("%d questions in a second", window)
		}
		if len(asked) == n {
			return
		}
		if second > 120 {
			t.Fatalf("after two minutes the control plane was asked about %d of %d", len(asked), n)
		}
		window = 0
		s.pass(time.Second)
		count(s.others(Timer{}))
	}
}

// What is due sooner than the timer that was asked for has another asked for.
func TestTheTimerComesForWhatIsDueFirst(t *testing.T) {
	s := newScript(t, func(c *Config) { c.Loads.Min = time.Hour })
	s.step(Seen{node(2, 1)})
	s.step(Report{1, nil})
	after := func(ev Event) (out []time.Duration) {
		for _, f := range s.c.Step(s.now, ev) {
			if a, ok := f.(After); ok {
				out = append(out, a.Delay)
			}
		}
		return out
	}
	if got := after(Report{2, nil}); !slices.Equal(got, []time.Duration{time.Hour}) {
		t.Errorf("for a load: after %v", got)
	}
	if got := after(Failed{life(2, 1)}); !slices.Equal(got, []time.Duration{time.Second}) {
		t.Errorf("for a life that is doubted: after %v", got)
	}
}

// Of many nodes that notice one death a few ask. If those are not heard, more do, and in the end all.
func TestAFewOfManyAsk(t *testing.T) {
	const n = 200
	var at int64
	nodes := make([]*script, n)
	for i := range nodes {
		nodes[i] = newScript(t, func(c *Config) { c.Random = func(n int64) int64 { at += 7919; return at % n } })
		for h := ids.Home(2); h <= n; h++ {
			nodes[i].step(Seen{node(h, 1)})
		}
	}
	asked := func(ev Event) (sum int) {
		for _, s := range nodes {
			sum += len(s.others(ev))
			s.pass(time.Second)
		}
		return sum
	}
	if first := asked(Failed{life(2, 1)}); first < 1 || first > 12 {
		t.Errorf("%d of %d ask at once, want about 3", first, n)
	}
	for range 10 {
		asked(Timer{})
	}
	for _, s := range nodes {
		if p := s.c.doubts.lives[2].plea; p.gap == int64(s.c.cfg.AccuseEvery) {
			t.Fatalf("a node has not asked after %d rounds", p.round)
		}
	}
}
