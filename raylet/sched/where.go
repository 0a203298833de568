package sched

import (
	"mobula/internal/errs"
	"mobula/wire"
)

// checkWhere tells what is wrong with what options say about nodes.
func checkWhere(opts *wire.TaskOptions) *errs.Error {
	if opts.Spread && opts.Affinity != wire.AffinityNone {
		return errs.New(errs.CodeInvalid, "%s: it is to spread, and to run on node %v: ask for one of them", funcName(opts), opts.Node)
	}
	for _, s := range []wire.Selector{opts.Labels, opts.PreferLabels} {
		if err := s.Validate(); err != nil {
			return errs.New(errs.CodeInvalid, "%s: %v", funcName(opts), err)
		}
	}
	return nil
}

// elsewhere says why a class must run on another node; nil: it may run here. What it prefers is for whoever chooses among nodes.
func (c *Core) elsewhere(opts *wire.TaskOptions) *errs.Error {
	if opts == nil {
		return nil
	}
	if opts.Affinity == wire.AffinityHard && opts.Node != c.home {
		return errs.New(errs.CodeUnschedulable, "%s asks for node %v, this is node %s; ask for a node that is there, or prefer it and let others do",
			funcName(opts), opts.Node, c.name)
	}
	lacks := wire.Selector(opts.Labels).Unmet(c.labels)
	if lacks == nil {
		return nil
	}
	has := "has no label " + lacks.Key
	if value, there := c.labels[lacks.Key]; there {
		has = "has " + lacks.Key + "=" + value
	}
	return errs.New(errs.CodeUnschedulable, "%s asks for a node where %v, this node %s; ask for other labels or start a node that has them", funcName(opts), lacks, has)
}
