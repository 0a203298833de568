package client

import (
	"runtime"
	"sync/atomic"
)

// Token is one reference of user code to a handle: it releases the handle once, by
// Release or, at the latest, when the garbage collector finds it unreachable.
//
// A cleanup for each reference costs some 600 ns of CPU, most of it in the collector. So
// tokenGroup tokens made one after another share one allocation and one cleanup: those
// that were not released explicitly go when the last of the group is unreachable. What
// that can hold back is bounded by tokenGroup-1 objects for each token kept.
type Token struct {
	h    *Handle
	g    *tokenState
	slot uint8
}

// tokenGroup is a compromise: 8 brings the cleanup's share of a token to some 75 ns.
const tokenGroup = 8

// tokenBlock is what the collector watches; nothing in tokenState leads to it.
type tokenBlock struct{ tokens [tokenGroup]Token }

type tokenState struct {
	open [tokenGroup]atomic.Pointer[Handle]
}

// tokenRun is a block that is being filled by one goroutine at a time.
type tokenRun struct {
	block *tokenBlock
	state *tokenState
	n     int
}

// NewToken takes over one user's hold on h.
func (c *Client) NewToken(h *Handle) *Token {
	run, ok := c.tokens.Get().(*tokenRun)
	if !ok {
		run = new(tokenRun)
	}
	if run.block == nil {
		run.block, run.state, run.n = new(tokenBlock), new(tokenState), 0
		runtime.AddCleanup(run.block, releaseAll, run.state)
	}
	t := &run.block.tokens[run.n]
	t.h, t.g, t.slot = h, run.state, uint8(run.n)
	run.state.open[run.n].Store(h)
	if run.n++; run.n == tokenGroup {
		run.block, run.state = nil, nil
	}
	c.tokens.Put(run)
	return t
}

// Handle is the handle, also after Release. The caller keeps the token reachable while
// it uses the handle.
func (t *Token) Handle() *Handle { return t.h }

// Release ends the hold. Only the first call does anything.
func (t *Token) Release() { t.g.release(int(t.slot)) }

// Released tells whether Release was called.
func (t *Token) Released() bool { return t.g.open[t.slot].Load() == nil }

func (g *tokenState) release(slot int) {
	if h := g.open[slot].Swap(nil); h != nil {
		h.Release()
	}
}

func releaseAll(g *tokenState) {
	for i := range g.open {
		g.release(i)
	}
}
