package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/raylet/sched"
	"mobula/wire"
)

// infeasible says why no node can run a shape: how many nodes lack what.
func infeasible(v *View, s *Shape) *errs.Error {
	var other, away, labels int
	short := make([]int, len(s.Need)) // nodes that have too little of it, and enough of those before it
	most := make([]int64, len(s.Need))
	for i := range v.Nodes {
		n := &v.Nodes[i]
		lacks := slices.IndexFunc(s.Need, func(x wire.Resource) bool { return amountOf(n.Total, x.Name) < x.Amount })
		switch {
		case !s.Strategy.allows(n.ID):
			other++
		case n.State != Alive:
			away++
		case !s.Labels.Matches(n.Labels):
			labels++
		case lacks >= 0:
			short[lacks]++
			most[lacks] = max(most[lacks], amountOf(n.Total, s.Need[lacks].Name))
		}
	}
	var why []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			why = append(why, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	say(other, "not asked for")
	say(away, "draining or dead")
	say(labels, "without the labels")
	for i, x := range s.Need {
		say(short[i], "with too little %s, at most %s", x.Name, sched.Amount(x.Name, most[i]))
	}
	return errs.New(errs.CodeUnschedulable, "%s: no node can run it: of %d nodes %s; ask less or start a node that has it",
		s, len(v.Nodes), strings.Join(why, "; "))
}

// Lack is demands of one shape that wait on nodes though no node can ever run them.
type Lack struct {
	Shape Shape
	N     int
	Why   *errs.Error
}

// Lacks gives what the nodes say waits there and no node can run, by shape: what a cluster would have to grow by.
func Lacks(v *View) []Lack {
	var out []Lack
	for i := range v.Nodes {
		for _, b := range v.Nodes[i].Backlog {
			if at := slices.IndexFunc(out, func(l Lack) bool { return l.Shape.Equal(b.Shape) }); at >= 0 {
				out[at].N += b.N
			} else if b.N > 0 {
				out = append(out, Lack{Shape: b.Shape, N: b.N})
			}
		}
	}
	out = slices.DeleteFunc(out, func(l Lack) bool {
		return slices.ContainsFunc(v.Nodes, func(n Node) bool { return n.able(&l.Shape) })
	})
	for i := range out {
		out[i].Why = infeasible(v, &out[i].Shape)
	}
	slices.SortFunc(out, func(a, b Lack) int { return cmp.Compare(a.Shape.String(), b.Shape.String()) })
	return out
}
