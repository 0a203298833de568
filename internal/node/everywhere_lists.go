package node

import (
	"context"

	"mobula/internal/node/inspect"
	"mobula/internal/state"
)

// lister is a list that each node has of its own.
type lister[T any] func(*inspect.Inspector, context.Context, state.Query) (state.List[T], error)

// list makes a handler of the lists of all nodes.
func list[T any](method string, rows state.Kind[T], f lister[T]) handler {
	return handle(func(r *requests, ctx context.Context, q state.Query) (page state.Page[T], err error) {
		to, err := r.scope(ctx, q.Node)
		if err != nil {
			return page, err
		}
		if to.isHere() {
			l, err := f(r.inspect, ctx, q)
			return l.Page, err
		}
		if q, err = state.Check[T](q); err != nil {
			return page, err
		}
		parts, missing, err := everywhere(ctx, r, to, answerWithin, method, q.Ask, func(ctx context.Context, q state.Query) (state.Placed[T], error) { return f.placed(ctx, r.inspect, q) })
		if err != nil {
			return page, err
		}
		pages := make([]state.Part[T], len(parts))
		for i, p := range parts {
			pages[i] = state.Part[T]{Node: p.node, Ahead: p.ahead, Placed: p.out}
		}
		page, err = rows.Join(q, pages)
		page.Unreachable = missing
		return page, err
	})
}

// placed makes a handler of this node's list, for the node that joins it with others.
func placed[T any](f lister[T]) handler {
	return handle(func(r *requests, ctx context.Context, q state.Query) (state.Placed[T], error) {
		return f.placed(ctx, r.inspect, q)
	})
}

func (f lister[T]) placed(ctx context.Context, n *inspect.Inspector, q state.Query) (out state.Placed[T], err error) {
	l, err := f(n, ctx, q)
	if err != nil {
		return out, err
	}
	return l.Placed(), nil
}

// nodeMemory is the memory of one node, as it is joined with that of others.
type nodeMemory struct {
	Store   state.Store
	Inline  uint64
	Objects state.Placed[state.Object]
}

func placedMemory(ctx context.Context, n *inspect.Inspector, q state.Query) (out nodeMemory, err error) {
	m, err := n.Memory(ctx, q)
	if err != nil {
		return out, err
	}
	return nodeMemory{Store: m.Store, Inline: m.Inline, Objects: m.Objects.Placed()}, nil
}

// memory lists the objects of all nodes by size, and says how full each store is.
func (r *requests) memory(ctx context.Context, q state.Query) (m state.Memory, err error) {
	to, err := r.scope(ctx, q.Node)
	if err != nil {
		return m, err
	}
	if to.isHere() {
		l, err := r.inspect.Memory(ctx, q)
		return l.Memory, err
	}
	if q, err = state.Check[state.Object](q); err != nil {
		return m, err
	}
	parts, missing, err := everywhere(ctx, r, to, answerWithin, state.MethodMemory, q.Ask, func(ctx context.Context, q state.Query) (nodeMemory, error) { return placedMemory(ctx, r.inspect, q) })
	if err != nil {
		return m, err
	}
	pages := make([]state.Part[state.Object], len(parts))
	for i, p := range parts {
		pages[i] = state.Part[state.Object]{Node: p.node, Placed: p.out.Objects}
		m.Nodes = append(m.Nodes, state.NodeMemory{Node: p.name, Store: p.out.Store, Inline: p.out.Inline})
	}
	m.Store, m.Inline = m.Nodes[0].Store, m.Nodes[0].Inline
	m.Objects, err = state.SizedRows.Join(q, pages)
	m.Objects.Unreachable = missing
	return m, err
}
