package cluster

import (
	"fmt"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// infeasible says why no node can run a shape: how many nodes lack what.
func infeasible(v *View, s *Shape, nameOf func(ids.Home) string) *errs.Error {
	var other, away, labels, idle int
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
		case !n.lends(s):
			idle++
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
	say(idle, "without CPUs, which take only what names them")
	for i, x := range s.Need {
		say(short[i], "with too little %s, at most %s", x.Name, sched.Amount(x.Name, most[i]))
	}
	return errs.New(errs.CodeUnschedulable, "%s: no node can run it: of %d nodes %s; ask less or start a node that has it",
		s.text(nameOf), len(v.Nodes), strings.Join(why, "; "))
}
