package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/node/gather"
	"mobula/internal/state"
)

// scope is whom a request is about.
type scope struct {
	here  bool       // this node
	nodes []ids.Home // others
	one   bool       // a node that was named: its failure is the request's
}

// scope finds the nodes that a request is about: the one that it names, by name or home, or all.
func (r *requests) scope(ctx context.Context, node string) (scope, error) {
	switch {
	case node == "" && r.links.alone(), node == r.cfg.Name, node == r.numbers.Row().Home.String():
		return scope{here: true}, nil
	case node == "":
		return scope{here: true, nodes: r.cfg.Cluster.Others()}, nil
	}
	var names []string
	if !r.links.alone() {
		for _, other := range r.cfg.Cluster.Others() {
			name := r.links.nameOf(other)
			if node == name || node == other.String() {
				return only(other), nil
			}
			names = append(names, name)
		}
		if name := r.dead(ctx, func(row *gcs.NodeRecord) bool { return row.Name == node || row.Home.String() == node }); name != "" {
			return scope{}, errs.New(errs.CodeNotFound, "node %s is dead: nobody can ask it any more", name)
		}
	}
	return scope{}, errs.New(errs.CodeNotFound, "node %q is not in the cluster of node %s, which has beside it %q", node, r.cfg.Name, names)
}

func only(node ids.Home) scope { return scope{nodes: []ids.Home{node}, one: true} }

// homeScope finds the node that a request is about from a home that is in an id.
func (r *requests) homeScope(home ids.Home) scope {
	if !r.links.alone() && home != r.numbers.Row().Home && slices.Contains(r.cfg.Cluster.Others(), home) {
		return only(home)
	}
	return scope{here: true} // which says that it does not know the id, if that is so
}

// dead finds the name of a node whose life the control plane has ended, and that is not back; empty: there is none.
func (r *requests) dead(ctx context.Context, is func(*gcs.NodeRecord) bool) string {
	ctx, cancel := context.WithTimeout(ctx, tableTime)
	defer cancel()
	rows, err := r.control.nodes(ctx)
	if err != nil {
		return "" // the error says less
	}
	for i := range rows {
		if rows[i].Dead && is(&rows[i]) {
			return rows[i].Name
		}
	}
	return ""
}

// tableTime is how long an error waits for the control plane to say more.
const tableTime = time.Second

// unknown says more of an id that this node does not know: it may be of a node that is not there.
func (r *requests) unknown(ctx context.Context, home ids.Home, err error) error {
	if err == nil || !errors.Is(err, errs.ErrNotFound) || r.links.alone() || home == r.numbers.Row().Home || slices.Contains(r.cfg.Cluster.Others(), home) {
		return err
	}
	if name := r.dead(ctx, func(row *gcs.NodeRecord) bool { return row.Home == home }); name != "" {
		return errs.New(errs.CodeNotFound, "it is of node %s, which is dead: nobody can ask it any more", name)
	}
	return errs.New(errs.CodeNotFound, "%s; it is of node %s, which is not in the cluster now", errs.From(err).Msg, r.links.nameOf(home))
}

// isHere tells whether this node alone is asked.
func (s scope) isHere() bool { return s.here && len(s.nodes) == 0 }

// part is what one node answers.
type part[T any] struct {
	node  ids.Home
	name  string
	ahead int64 // of its clock
	out   T
}

// everywhere has a request answered by each node that it is about: here by this one, and by the others as a question of which in makes the body. Who says
// nothing for that long is missing, which is an error where it was named. Who knows nothing of it has no part, and has answered. This node's part is the
// first, and the others follow in the order of homes.
func everywhere[In, Out any](
	ctx context.Context, r *requests, to scope, within time.Duration, method string, in func(ids.Home) (In, error), here func(context.Context, In) (Out, error),
) (parts []part[Out], missing []state.Unreachable, err error) {
	bodies := make(map[ids.Home][]byte)
	for _, node := range to.nodes {
		x, err := in(node)
		if err != nil {
			return nil, nil, err
		}
		if bodies[node], err = cbor.Marshal(x); err != nil {
			return nil, nil, fmt.Errorf("%s: the question: %w", method, err)
		}
	}
	a := r.questions.put(method, within, bodies)
	defer a.end()
	if to.here {
		x, err := in(r.numbers.Row().Home)
		if err != nil {
			return nil, nil, err
		}
		out, err := here(ctx, x)
		switch {
		case err == nil:
			parts = append(parts, part[Out]{node: r.numbers.Row().Home, name: r.cfg.Name, out: out})
		case len(to.nodes) == 0 || !errors.Is(err, errs.ErrNotFound):
			return nil, nil, err
		}
	}
	done, err := r.aside(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	lacks := make(map[ids.Home]*errs.Error)
	for _, m := range done.Missing {
		lacks[m.Node] = m.Err
	}
	for _, x := range done.Answers {
		p := part[Out]{node: x.Node, name: r.links.nameOf(x.Node), ahead: r.links.ahead(x.Node)}
		if lacks[x.Node] = x.Err; x.Err == nil {
			if err := cbor.Unmarshal(x.Body, &p.out); err != nil {
				lacks[x.Node] = errs.New(errs.CodeProtocol, "its answer: %v", err)
				continue
			}
			parts = append(parts, p)
		}
	}
	for node, why := range lacks {
		switch {
		case why == nil, why.Code == errs.CodeNotFound && !to.one:
			continue
		case to.one:
			return nil, nil, errs.New(why.Code, "node %s: %s", r.links.nameOf(node), why.Msg)
		}
		missing = append(missing, state.Unreachable{Node: r.links.nameOf(node), Why: cmp.Or(why.Msg, why.Error())})
	}
	slices.SortFunc(missing, func(a, b state.Unreachable) int { return cmp.Compare(a.Node, b.Node) })
	return parts, missing, nil
}

// aside awaits the end of a question. Meanwhile another request may run: those of all nodes could wait for one another.
func (r *requests) aside(ctx context.Context, a *asking) (gather.Done, error) {
	<-r.running
	defer func() { r.running <- struct{}{} }()
	return a.await(ctx)
}
