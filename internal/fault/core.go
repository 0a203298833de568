package fault

import (
	"math/rand/v2"
	"time"
)

// core counts and decides. It knows neither time nor processes.
type core struct {
	seed  uint64
	rules []counted
}

type counted struct {
	Rule
	seen, hits int
}

func newCore(seed uint64, rules []Rule) *core {
	c := &core{seed: seed, rules: make([]counted, len(rules))}
	for i, r := range rules {
		r.Nth = max(r.Nth, 1)
		switch {
		case r.Times == 0 && r.Chance == 0:
			r.Times = 1
		case r.Times == 0:
			r.Times = -1
		}
		c.rules[i].Rule = r
	}
	return c
}

// Event is a fault that was made.
type Event struct {
	Rule int // its place in the plan
	N    int // the occurrence, among those of its rule
	Site Site
	Decision
}

// step takes one occurrence. Every rule that matches counts it; the first one that is due decides.
func (c *core) step(s Site, who Subject) (ev Event, hit bool) {
	for i := range c.rules {
		r := &c.rules[i]
		if !r.matches(s, who) {
			continue
		}
		r.seen++
		d, due := c.due(i, r.seen)
		if !due || r.Times >= 0 && r.hits >= r.Times {
			continue
		}
		if !hit {
			r.hits++
			ev, hit = Event{Rule: i, N: r.seen, Site: s, Decision: d}, true
		}
	}
	return ev, hit
}

// due decides only by seed, rule and occurrence.
func (c *core) due(rule, n int) (Decision, bool) {
	r := &c.rules[rule]
	if n < r.Nth {
		return Decision{}, false
	}
	rng := rand.New(rand.NewPCG(c.seed, uint64(rule)<<32^uint64(n)))
	if r.Chance > 0 && rng.Float64() >= r.Chance {
		return Decision{}, false
	}
	d := Decision{Do: r.Do, For: r.Least, Err: r.Err}
	if r.Most > r.Least {
		d.For += time.Duration(rng.Int64N(int64(r.Most - r.Least)))
	}
	return d, true
}
