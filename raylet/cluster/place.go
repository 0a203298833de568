package cluster

import (
	"math/rand/v2"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Verdict is what a Decision comes to.
type Verdict uint8

// The verdicts.
const (
	Here       Verdict = iota // the node that decides takes it
	There                     // another one does
	Wait                      // it stays where it is until a node has reported: one that could run it is not free
	Infeasible                // no node can run it as they are
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case Here:
		return "here"
	case There:
		return "there"
	case Wait:
		return "wait"
	case Infeasible:
		return "infeasible"
	}
	return "invalid"
}

// Decision is where a demand goes.
type Decision struct {
	Verdict Verdict
	Node    ids.Home    // of Here and There
	Why     *errs.Error // of Infeasible
}

// Place decides where a demand goes. rnd is drawn from where there are several best nodes to choose from; it may be nil where Config says that there are not.
func Place(v *View, d Demand, cfg Config, rnd *rand.Rand) Decision {
	return place(v, &d, nil, cfg, rnd)
}

// place is Place with nodes to leave out, which are not free for this demand.
func place(v *View, d *Demand, excluded []ids.Home, cfg Config, rnd *rand.Rand) Decision {
	able, free := candidates(v, &d.Shape, excluded)
	if able == 0 {
		return Decision{Verdict: Infeasible, Why: infeasible(v, &d.Shape)}
	}
	if free = named(v, free, &d.Shape); len(free) == 0 {
		return Decision{Verdict: Wait}
	}
	free = preferred(v, free, &d.Shape)
	free = cool(v, free, cfg)
	if d.Strategy.Kind == Spread {
		return v.at(spread(v, free))
	}
	near := locality(v, free, d)
	if free.has(v, near) && d.bytesAt(near) >= cfg.HeavyArgs {
		return v.at(near)
	}
	return v.at(hybrid(v, free, &d.Shape, near, cfg, rnd))
}

// at is the decision for a node.
func (v *View) at(id ids.Home) Decision {
	if id == v.Self {
		return Decision{Verdict: Here, Node: id}
	}
	return Decision{Verdict: There, Node: id}
}
