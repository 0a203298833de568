package world

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"mobula/gcs/directory"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner"
	"mobula/raylet/owner/actor"
	"mobula/raylet/sched"
	"mobula/remote"
	"mobula/wire"
)

// A mutant is a fault that no part may have: a promise that is kept only because of what it breaks. Each is planted by what is put into boxes, and
// each has to be found.
var mutants = map[string]func(rng *rand.Rand) func(w *World, box string, ev any) []any{
	"lost decrement":        lostDecrement,
	"no dedupe":             noDedupe,
	"repeated call":         repeatedCall,
	"repeated submit":       repeatedSubmit,
	"no fence":              noFence,
	"stale location":        staleLocation,
	"unacknowledged borrow": unacknowledgedBorrow,
	"double grant":          doubleGrant,
	"early free":            earlyFree,
	"stale lease":           staleLease,
	"lost revocation":       lostRevocation,
	"wrong extent":          wrongExtent,
	"lost unpin":            lostUnpin,
	"lost question":         lostQuestion,
	"lost refusal":          lostRefusal,
	"forgotten name":        forgottenName,
}

// mutantSeeds is how many seeds a mutant may survive.
const mutantSeeds = 200

func TestMutantsAreFound(t *testing.T) { findEach(t, mutants, Config{}) }

// findEach has worlds find each of some mutants.
func findEach(t *testing.T, mutants map[string]func(rng *rand.Rand) func(w *World, box string, ev any) []any, cfg Config) {
	for name, plant := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			for seed := range uint64(mutantSeeds) {
				cfg.Seed, cfg.Tamper = seed, plant(rand.New(rand.NewPCG(seed, 1)))
				_, err := Run(cfg)
				var f *Failure
				if errors.As(err, &f) {
					why, _, _ := strings.Cut(f.Why, "\n")
					t.Logf("found with seed %d: %.300s", seed, why)
					return
				}
			}
			t.Errorf("it has survived %d seeds", mutantSeeds)
		})
	}
}

// messages changes a batch of a client's messages, one by one.
func messages(ev any, change func(m wire.Msg) []wire.Msg) []any {
	batch, ok := ev.([]wire.Msg)
	if !ok {
		return []any{ev}
	}
	var out []wire.Msg
	for _, m := range batch {
		out = append(out, change(m)...)
	}
	if len(out) == 0 {
		return nil
	}
	return []any{out}
}

// lostDecrement loses a client's word now and then that it has let go of an object.
func lostDecrement(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		return messages(ev, func(m wire.Msg) []wire.Msg {
			if _, ok := m.(*wire.Release); ok && rng.IntN(20) == 0 {
				return nil
			}
			return []wire.Msg{m}
		})
	}
}

// noDedupe takes a message of another node twice now and then.
func noDedupe(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if _, ok := ev.(delivered); ok && rng.IntN(50) == 0 {
			return []any{ev, ev}
		}
		return []any{ev}
	}
}

// noFence has no node hear that the life of another is over.
func noFence(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if p, ok := ev.(*peerEvent); ok {
			if _, fence := p.ev.(remote.Fence); fence {
				return nil
			}
		}
		return []any{ev}
	}
}

// staleLocation loses the word of a store that it does not have what its owner thinks it has, or what another store was to have.
func staleLocation(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if f, ok := ev.(owner.FromStore); ok {
			if _, lost := f.Msg.(objectstore.Lost); lost {
				return nil
			}
		}
		return []any{ev}
	}
}

// unacknowledgedBorrow loses a client's word now and then that it holds what it has found in a value.
func unacknowledgedBorrow(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		return messages(ev, func(m wire.Msg) []wire.Msg {
			if _, ok := m.(*wire.AddRef); ok && rng.IntN(4) == 0 {
				return nil
			}
			return []wire.Msg{m}
		})
	}
}

// repeatedCall has a worker run an actor's call twice now and then.
func repeatedCall(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		m, ok := ev.(*wire.Exec)
		if !ok || m.Tasks[0].Spec.Kind != wire.TaskActorCall || rng.IntN(4) > 0 {
			return []any{ev}
		}
		return []any{ev, ev}
	}
}

// repeatedSubmit submits actors' calls once more that their caller has let go of, and that may be forgotten, and lets go of them again.
func repeatedSubmit(*rand.Rand) func(*World, string, any) []any {
	held, gone := make(map[ids.ObjectID]wire.Msg), make(map[string][]wire.Msg) // by connection
	return func(_ *World, box string, ev any) []any {
		return messages(ev, func(m wire.Msg) []wire.Msg {
			switch m := m.(type) {
			case *wire.Submit:
				again := gone[box]
				delete(gone, box)
				if m.Spec.Kind == wire.TaskActorCall {
					held[m.Spec.ID.Return(0)] = m
				}
				return append(again, m)
			case *wire.Release:
				for _, id := range m.IDs {
					if call := held[id]; call != nil {
						gone[box] = append(gone[box], call, &wire.Release{IDs: []ids.ObjectID{id}})
					}
				}
			}
			return []wire.Msg{m}
		})
	}
}

// doubleGrant gives a lease now and then on a slot that another lease has.
func doubleGrant(rng *rand.Rand) func(*World, string, any) []any {
	fake := ids.LeaseID(1 << 30)
	return func(_ *World, _ string, ev any) []any {
		f, ok := ev.(owner.FromSched)
		if !ok {
			return []any{ev}
		}
		g, ok := f.Msg.(sched.Granted)
		if !ok || g.Epoch != 0 || rng.IntN(4) > 0 {
			return []any{ev}
		}
		fake++
		g.Lease = fake
		return []any{ev, owner.FromSched{Msg: g}}
	}
}

// earlyFree frees an object as it is sealed, now and then.
func earlyFree(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		s, ok := ev.(objectstore.SealObject)
		if !ok || !s.ID.IsPut() || rng.IntN(4) > 0 {
			return []any{ev}
		}
		return []any{ev, objectstore.Free{IDs: []ids.ObjectID{s.ID}}}
	}
}

// staleLease gives a lease again that was revoked.
func staleLease(*rand.Rand) func(*World, string, any) []any {
	granted := make(map[ids.LeaseID]sched.Granted)
	return func(_ *World, _ string, ev any) []any {
		f, ok := ev.(owner.FromSched)
		if !ok {
			return []any{ev}
		}
		switch m := f.Msg.(type) {
		case sched.Granted:
			granted[m.Lease] = m
		case sched.Revoked:
			if g, known := granted[m.Lease]; known {
				return []any{ev, owner.FromSched{Msg: g}}
			}
		}
		return []any{ev}
	}
}

// lostRevocation loses the scheduler's word that a lease is over, and with it the reason, and what the pool says of the process.
func lostRevocation(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		switch ev := ev.(type) {
		case owner.FromSched:
			if _, ok := ev.Msg.(sched.Revoked); ok {
				return nil
			}
		case owner.ClientGone:
			return nil
		}
		return []any{ev}
	}
}

// wrongExtent tells a reader another place now and then.
func wrongExtent(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		m, ok := ev.(*wire.Resolved)
		if !ok || m.Result.Kind != wire.ResultStored || m.Extent.Off < 64 || rng.IntN(10) > 0 {
			return []any{ev}
		}
		wrong := *m
		wrong.Extent.Off -= 64
		return []any{&wrong}
	}
}

// lostUnpin loses a client's word now and then that it reads an object no more.
func lostUnpin(rng *rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		return messages(ev, func(m wire.Msg) []wire.Msg {
			if _, ok := m.(*wire.Unpin); ok && rng.IntN(20) == 0 {
				return nil
			}
			return []wire.Msg{m}
		})
	}
}

// lostQuestion loses a store's question what becomes of the extents of a client that is gone.
func lostQuestion(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if f, ok := ev.(owner.FromStore); ok {
			if inv, ok := f.Msg.(objectstore.Inventory); ok && len(inv.Left) > 0 {
				return nil
			}
		}
		return []any{ev}
	}
}

// lostRefusal loses the directory's word that an actor cannot be reached.
func lostRefusal(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if f, ok := ev.(owner.FromDirectory); ok {
			if at, ok := f.Msg.(owner.ActorAt); ok && at.State == actor.Locating {
				return nil
			}
		}
		return []any{ev}
	}
}

// forgottenName has a name not given up a second time where the tables did not answer the first.
func forgottenName(*rand.Rand) func(*World, string, any) []any {
	return func(_ *World, _ string, ev any) []any {
		if o, ok := ev.(ofCore); ok {
			if _, again := o.ev.(directory.FreeAgain); again {
				return nil
			}
		}
		return []any{ev}
	}
}
