package client

import (
	"context"

	"mobula/wire"
)

// Wait waits until n of the objects are resolved (a value or an error) and gives the
// indices of at most n of them, in order, and of the rest. When ctx ends first it gives
// what is ready and ErrGetTimeout or the cause of ctx; every handle stays valid.
func (g *gets) Wait(ctx context.Context, hs []*Handle, n int) (ready, rest []int, err error) {
	n = min(n, len(hs))
	known := make([]bool, len(hs)) // a value stays known even if it is evicted meanwhile
	have := 0
	for i, h := range hs {
		if known[i] = h.res.Load() != nil; known[i] {
			have++
		}
	}
	if have < n {
		err = g.waitFor(ctx, hs, n-have, known)
	}
	ready = make([]int, 0, n)
	rest = make([]int, 0, len(hs)-n)
	for i := range hs {
		if len(ready) < n && known[i] {
			ready = append(ready, i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(ready) == n {
		err = nil
	}
	return ready, rest, err
}

// waitFor waits until n more objects are known.
func (g *gets) waitFor(ctx context.Context, hs []*Handle, n int, known []bool) error {
	if err := g.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctxError(ctx)
	}
	pending := 0
	for _, k := range known {
		if !k {
			pending++
		}
	}
	w := g.waiter()
	nodes := w.nodes(pending)[:0]
	w.left.Store(int32(n) + 1)
	gets := make([]wire.Get, 0, pending)
	var err error
	for i, h := range hs {
		if known[i] {
			continue
		}
		nodes = append(nodes, waitNode{w: w, h: h, i: i})
		var ask bool
		if ask, err = g.link(&nodes[len(nodes)-1]); err != nil {
			nodes = nodes[:len(nodes)-1]
			break
		}
		if ask {
			gets = append(gets, wire.Get{ID: h.id})
		}
	}
	if asked := g.outbox.ask(gets); err == nil { // also those before a released one: they count as asked
		err = asked
	}
	if err == nil && w.left.Add(-1) > 0 {
		err = g.await(ctx, w, nodes)
	}
	g.unlink(nodes)
	for i := range nodes {
		known[nodes[i].i] = nodes[i].done
	}
	g.free(w)
	return err
}
