package order

import (
	"math/bits"
	"slices"
)

// span is the run of numbers from lo up to, but not including, hi.
type span struct{ lo, hi int32 }

// A set is a list of its runs, in order, with gaps between them. Sets never change, so several tasks may share
// one.

func setSize(s []span) (n int32) {
	for _, r := range s {
		n += r.hi - r.lo
	}
	return n
}

// spans unites sets. The sets it makes lie in blocks; the garbage collector frees a block when all its sets are
// dropped.
type spans struct {
	block   []span
	scratch []span
	bits    []uint64 // scratch, all zero

	held, most int  // how many runs are in use, and how many may be
	coarse     bool // there were too many
}

const blockSpans = 1024

// one gives the set of one number.
func (p *spans) one(x int32) []span { return p.keep([]span{{x, x + 1}}) }

func (p *spans) keep(s []span) []span {
	if len(s) > blockSpans/4 {
		return slices.Clone(s)
	}
	if cap(p.block)-len(p.block) < len(s) {
		p.block = make([]span, 0, blockSpans)
	}
	at := len(p.block)
	p.block = append(p.block, s...)
	return p.block[at:len(p.block):len(p.block)]
}

// union gives the union of the sets of one or more tasks. It returns one of their sets if that has all numbers,
// else a fresh one. If too many runs are in use the fresh set has more than the union: gaps are filled until a few
// runs are left.
func (p *spans) union(sets [][]span, of []int32) (s []span, fresh bool) {
	first := sets[of[0]]
	last := first
	all := append(p.scratch[:0], first...)
	for _, v := range of[1:] {
		if s := sets[v]; !same(s, last) && !same(s, first) {
			all = append(all, s...)
			last = s
		}
	}
	p.scratch = all
	if len(all) == len(first) {
		return first, false
	}
	out := p.merge(all)
	for _, v := range of {
		if slices.Equal(out, sets[v]) {
			return sets[v], false
		}
	}
	if p.held > p.most {
		p.coarse = true
		out = coarsen(out)
	}
	return p.keep(out), true
}

const coarseRuns = 16

func coarsen(s []span) []span {
	each := (len(s) + coarseRuns - 1) / coarseRuns
	out := s[:0]
	for i := 0; i < len(s); i += each {
		out = append(out, span{s[i].lo, s[min(i+each, len(s))-1].hi})
	}
	return out
}

// merge unites runs in place: by sorting them, or if they are many and close, with a bitmap.
func (p *spans) merge(all []span) []span {
	lo, hi := all[0].lo, all[0].hi
	for _, r := range all {
		lo, hi = min(lo, r.lo), max(hi, r.hi)
	}
	if words := int(hi-lo)/64 + 1; len(all) > 32 && len(all)*bits.Len(uint(len(all))) > words {
		return p.paint(all, lo, words+1)
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.lo - b.lo) })
	out := all[:1]
	for _, r := range all[1:] {
		if end := &out[len(out)-1]; r.lo <= end.hi {
			end.hi = max(end.hi, r.hi)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// paint unites runs, none of which lies below lo, with a bit for each number.
func (p *spans) paint(all []span, lo int32, words int) []span {
	if len(p.bits) < words {
		p.bits = make([]uint64, words)
	}
	for _, r := range all {
		first, last := (r.lo-lo)/64, (r.hi-1-lo)/64
		head, tail := ^uint64(0)<<((r.lo-lo)%64), ^uint64(0)>>(63-(r.hi-1-lo)%64)
		if first == last {
			p.bits[first] |= head & tail
			continue
		}
		p.bits[first] |= head
		for w := first + 1; w < last; w++ {
			p.bits[w] = ^uint64(0)
		}
		p.bits[last] |= tail
	}
	out := all[:0]
	open := false // the last run goes on
	for w, word := range p.bits[:words] {
		p.bits[w] = 0
		base := lo + int32(w)*64
		for at := 0; at < 64; {
			if open {
				at += bits.TrailingZeros64(^(word >> at))
				if at < 64 {
					out[len(out)-1].hi = base + int32(at)
					open = false
				}
			} else if rest := word >> at; rest != 0 {
				at += bits.TrailingZeros64(rest)
				out = append(out, span{lo: base + int32(at)})
				open = true
			} else {
				break
			}
		}
	}
	return out
}

// same tells whether two sets are one slice.
func same(a, b []span) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
