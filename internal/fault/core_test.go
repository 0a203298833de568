package fault

import (
	"errors"
	"slices"
	"testing"
	"time"

	"mobula/internal/errs"
)

func run(c *core, s Site, n int) (hits []int) {
	for i := 1; i <= n; i++ {
		if _, hit := c.step(s, Subject{}); hit {
			hits = append(hits, i)
		}
	}
	return hits
}

func TestOccurrencesAreCounted(t *testing.T) {
	here := Site{Kind: Place, Name: "here"}
	for what, c := range map[string]struct {
		rule Rule
		want []int
	}{
		"the first":               {Rule{}, []int{1}},
		"the third":               {Rule{Nth: 3}, []int{3}},
		"two from the third":      {Rule{Nth: 3, Times: 2}, []int{3, 4}},
		"all from the fifth":      {Rule{Nth: 5, Times: -1}, []int{5, 6, 7}},
		"two of those by chance":  {Rule{Chance: 1, Times: 2}, []int{1, 2}},
		"any of those by chance":  {Rule{Chance: 1, Nth: 6}, []int{6, 7}},
		"another place":           {Rule{At: Site{Kind: Place, Name: "there"}}, nil},
		"any place":               {Rule{At: Site{Kind: Place}, Nth: 2}, []int{2}},
		"no message":              {Rule{At: Site{Kind: Message, Name: "here"}}, nil},
		"messages of a component": {Rule{At: Site{Kind: Component, Name: "here"}}, nil},
	} {
		c.rule.Do = Delay
		if c.rule.At.Kind == "" {
			c.rule.At = here
		}
		if got := run(newCore(1, []Rule{c.rule}), here, 7); !slices.Equal(got, c.want) {
			t.Errorf("%s: hit at %v, want %v", what, got, c.want)
		}
	}
}

// A rule decides only by seed, rule and occurrence: not by what happens between two occurrences, nor by later rules.
func TestTheSeedDecides(t *testing.T) {
	a, b := Site{Kind: Place, Name: "a"}, Site{Kind: Place, Name: "b"}
	rules := []Rule{{At: a, Chance: .3, Do: Delay, Most: time.Second}, {At: b, Chance: .3, Do: Delay, Most: time.Second}}
	decided := func(seed uint64, sites ...Site) (out []Event) {
		c := newCore(seed, rules)
		for _, s := range sites {
			if ev, hit := c.step(s, Subject{}); hit {
				out = append(out, ev)
			}
		}
		slices.SortFunc(out, func(x, y Event) int { return 1000*(x.Rule-y.Rule) + x.N - y.N })
		return out
	}
	first := decided(7, append(slices.Repeat([]Site{a}, 100), slices.Repeat([]Site{b}, 100)...)...)
	mixed := decided(7, slices.Repeat([]Site{b, a}, 100)...)
	if len(first) < 30 || !slices.Equal(first, mixed) {
		t.Errorf("another order of occurrences, other decisions:\n%v\n%v", first, mixed)
	}
	if slices.Equal(first, decided(8, slices.Repeat([]Site{a, b}, 100)...)) {
		t.Error("another seed decides the same")
	}
	if run(newCore(7, rules[:1]), a, 100)[0] == run(newCore(7, []Rule{rules[1], rules[0]}), a, 100)[0] &&
		slices.Equal(run(newCore(7, rules[:1]), a, 100), run(newCore(7, []Rule{rules[1], rules[0]}), a, 100)) {
		t.Error("a rule's place in the plan does not matter")
	}
}

func TestOfTwoRulesTheFirstDecides(t *testing.T) {
	s := Site{Kind: Message, Name: "Done"}
	c := newCore(1, []Rule{{At: s, Nth: 2, Do: Delay}, {At: s, Times: -1, Do: Duplicate}})
	var got []Action
	for range 3 {
		ev, _ := c.step(s, Subject{})
		got = append(got, ev.Do)
	}
	if !slices.Equal(got, []Action{Duplicate, Delay, Duplicate}) {
		t.Errorf("decided %v", got)
	}
}

// Only a worker process can be killed at its message, and only a connection be cut.
func TestWhomAMessageIsOf(t *testing.T) {
	s := Site{Kind: Message, Name: "Done"}
	c := newCore(1, []Rule{{At: s, Do: Crash, Times: -1}, {At: s, Do: Drop, Times: -1}})
	for want, who := range map[Action]Subject{None: {}, Crash: {Worker: true, Wired: true}, Drop: {Wired: true}} {
		if ev, _ := c.step(s, who); ev.Do != want {
			t.Errorf("%+v: %q, want %q", who, ev.Do, want)
		}
	}
}

func TestComponentsMessages(t *testing.T) {
	for want, also := range map[string]bool{"": true, "FromClient": true, "owner.FromClient": true, "*owner.FromClient": true, "Client": false, "sched.FromClient": false} {
		r := Rule{At: Site{Kind: Component, Name: "owner", Detail: want}}
		if r.matches(Site{Kind: Component, Name: "owner", Detail: "owner.FromClient"}, Subject{}) != also {
			t.Errorf("%q: want %v", want, also)
		}
	}
}

func TestRulesThatMakeNoSense(t *testing.T) {
	every := Mode{Processes: true, Node: true}
	for what, r := range map[string]Rule{
		"no such message":          {At: Site{Kind: Message, Name: "Nothing"}, Do: Delay},
		"any message":              {At: Site{Kind: Message}, Do: Delay},
		"counted messages":         {At: Site{Kind: Message, Name: "Release"}, Do: Duplicate},
		"a call cannot come twice": {At: Site{Kind: Before, Name: "f"}, Do: Duplicate},
		"a component's message":    {At: Site{Kind: Component, Name: "owner"}, Do: Drop},
		"a slow spill":             {At: Site{Kind: Spill}, Do: Delay},
		"no target":                {Do: Delay},
		"nothing to do":            {At: Site{Kind: Place}},
		"a chance of 2":            {At: Site{Kind: Place}, Do: Delay, Chance: 2},
		"the time before last":     {At: Site{Kind: Place}, Do: Delay, Nth: -1},
		"fewer than none":          {At: Site{Kind: Place}, Do: Delay, Times: -2},
		"back in time":             {At: Site{Kind: Place}, Do: Delay, Least: -1},
	} {
		if err := New(1, []Rule{r}).Check(every); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, r := range map[string]Rule{
		"a crash of a goroutine": {At: Site{Kind: Before, Name: "f"}, Do: Crash},
		"a stop of a goroutine":  {At: Site{Kind: Place, Name: "p"}, Do: Freeze},
		"a cut of no connection": {At: Site{Kind: Message, Name: "Done"}, Do: Drop},
		"a kill of the test":     {At: Site{Kind: Place, Name: "p"}, Do: KillNode},
		"a stop of the test":     {At: Site{Kind: Spill}, Do: FreezeNode},
	} {
		p := New(1, []Rule{r})
		if err := p.Check(Mode{}); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		if err := p.Check(every); err != nil {
			t.Errorf("%s, of processes: %v", what, err)
		}
	}
}
