package world

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mobula/internal/ids"
	"mobula/raylet/owner"
	"mobula/wire"
)

// homesMutants are of what the owners of jobs of different homes say to each other.
var homesMutants = map[string]func(rng *rand.Rand) func(w *World, box string, ev any) []any{
	"lost borrow":            lostWord[*wire.AddRef],
	"lost return":            lostWord[*wire.Release],
	"lost question":          lostWord[*wire.Get],
	"lost answer":            lostWord[*wire.Resolved],
	"unacknowledged Arrived": lostNote[owner.Arrived],
	"unacknowledged Synced":  lostNote[owner.Synced],
	"late borrow":            lateBorrow,
	"early return":           earlyReturn,
}

func TestMutantsBetweenHomesAreFound(t *testing.T) {
	findEach(t, homesMutants, Config{Jobs: 6, Shares: true, Faults: -1})
}

// fromFar gives what the owner of a job of another home says to the one whose box it is.
func fromFar(w *World, box string, ev any) (m owner.FromOwner, ok bool) {
	m, ok = ev.(owner.FromOwner)
	return m, ok && !strings.HasPrefix(box, w.node(m.Job.Home()).name+" ")
}

// word gives a message of a client that an owner of another home says.
func word[M wire.Msg](w *World, box string, ev any) (m M, by ids.JobID, ok bool) {
	f, far := fromFar(w, box, ev)
	if words, isWords := f.Msg.(owner.Words); far && isWords {
		m, ok = words.Msg.(M)
	}
	return m, f.Job, ok
}

// lostWord loses a word of a kind now and then.
func lostWord[M wire.Msg](rng *rand.Rand) func(*World, string, any) []any {
	return func(w *World, box string, ev any) []any {
		if _, _, ok := word[M](w, box, ev); ok && rng.IntN(4) == 0 {
			return nil
		}
		return []any{ev}
	}
}

// lostNote loses the word of another owner now and then that it has what was on its way.
func lostNote[M owner.PeerMsg](rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if f, ok := ev.(owner.FromOwner); ok && rng.IntN(2) == 0 {
			if _, ok := f.Msg.(M); ok {
				return nil
			}
		}
		return []any{ev}
	}
}

// lateBorrow has an owner hear of a borrow some events later, though it has answered meanwhile that it knows of it.
func lateBorrow(*rand.Rand) func(*World, string, any) []any {
	type late struct {
		ev   any
		left int
	}
	waiting := make(map[string][]late)
	return func(w *World, box string, ev any) (out []any) {
		if _, _, ok := word[*wire.AddRef](w, box, ev); ok {
			waiting[box] = append(waiting[box], late{ev, 40})
			return nil
		}
		for i := range waiting[box] {
			waiting[box][i].left--
		}
		for len(waiting[box]) > 0 && waiting[box][0].left <= 0 {
			out = append(out, waiting[box][0].ev)
			waiting[box] = waiting[box][1:]
		}
		return append(out, ev)
	}
}

// earlyReturn has a home give back now and then what it has just borrowed, for itself or for another one.
func earlyReturn(rng *rand.Rand) func(*World, string, any) []any {
	return func(w *World, box string, ev any) []any {
		m, by, ok := word[*wire.AddRef](w, box, ev)
		if !ok || rng.IntN(4) > 0 {
			return []any{ev}
		}
		return []any{ev, owner.FromOwner{Job: by, Msg: owner.Words{Msg: &wire.Release{IDs: []ids.ObjectID{m.ID}}}}}
	}
}
