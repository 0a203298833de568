package home

import (
	"fmt"

	"mobula/internal/ids"
)

// Kind is what a number counts.
type Kind int

// The kinds.
const (
	Jobs Kind = iota
	Clients
	Workers
	Leases
	kinds
)

var kindNames = [kinds]string{"jobs", "clients", "workers", "leases"}

// String is the kind's name, as in the file.
func (k Kind) String() string { return kindNames[k] }

// blocks is how many numbers of a kind are reserved at once. It bounds how many a killed node skips, and how often a busy one
// writes.
var blocks = [kinds]uint64{Jobs: 16, Clients: 1 << 14, Workers: 1 << 10, Leases: 1 << 18}

// ledger counts the numbers given out and reserved, as a pure struct. Numbers begin at 1.
type ledger struct {
	last     [kinds]uint64 // given out
	reserved [kinds]uint64 // on disk: no higher number is given out
}

// next gives a number out; not ok if it is not reserved.
func (l *ledger) next(k Kind) (n uint64, ok bool) {
	if l.last[k] >= l.reserved[k] {
		return 0, false
	}
	l.last[k]++
	return l.last[k], true
}

// used notes that numbers up to n have been given out elsewhere; not ok if they were not reserved.
func (l *ledger) used(k Kind, n uint64) (ok bool) {
	l.last[k] = max(l.last[k], n)
	return l.last[k] <= l.reserved[k]
}

// low tells whether the next block should be reserved.
func (l *ledger) low(k Kind) bool { return l.reserved[k]-min(l.last[k], l.reserved[k]) <= blocks[k]/2 }

// nextReserve gives for all kinds the numbers to reserve up to, from those given out.
func (l *ledger) nextReserve() (out [kinds]uint64) {
	for k := range kinds {
		out[k] = min(max(l.reserved[k], l.last[k]+blocks[k]), ids.MaxNumber)
	}
	return out
}

// named is the form of the file.
func named(of [kinds]uint64) map[string]uint64 {
	out := make(map[string]uint64, kinds)
	for k, n := range of {
		out[Kind(k).String()] = n
	}
	return out
}

// unnamed is named backwards.
func unnamed(of map[string]uint64) (out [kinds]uint64, err error) {
	for k := range kinds {
		n, ok := of[k.String()]
		if !ok {
			return out, fmt.Errorf("it has no %q", k.String())
		}
		out[k] = n
	}
	return out, nil
}
