package actors

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// ledger is a core whose authoritative state is a log written by its effects: an event
// is stepped for good when its record is in the log.
type ledger struct{ seen map[int]bool }

type entry struct {
	id    int
	stepN int // panics in this many deliveries, after the core was changed
	doN   int // and in Do, in this many, before the record is written
	done  chan struct{}
}

func (l *ledger) Step(_ int64, e *entry) []*entry {
	l.seen[e.id] = true
	if e.stepN > 0 {
		e.stepN--
		panic("mid-step")
	}
	return []*entry{e}
}

// Whatever panics where, each event is recorded exactly once by a core that survived
// it, or poisoned, in the order of the posts.
func TestEveryEventOnceOrPoisoned(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "events")
		var list []*entry
		var want []int
		var wantPoison []int
		for i := range n {
			e := &entry{id: i,
				stepN: rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(t, "step panics"),
				doN:   rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(t, "do panics")}
			if e.stepN+e.doN >= 2 {
				wantPoison = append(wantPoison, i)
			} else {
				want = append(want, i)
			}
			list = append(list, e)
		}
		newFails := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "New fails")
		flushFails := rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, true}), n, n).Draw(t, "Flush fails")
		var buffered, log, poisoned []int
		flushFailed := false // the last one
		s := NewSystem(Config{})
		r, err := Spawn(s, Spec[*entry, *entry]{
			Kind: "ledger", Name: "ledger", Thread: rapid.Bool().Draw(t, "thread"),
			Mailbox: rapid.IntRange(1, 64).Draw(t, "bound"),
			Policy:  Policy{MaxRestarts: Unlimited, Backoff: 1, MaxBackoff: 1},
			New: func(st Start) (Core[*entry, *entry], []*entry, error) {
				if len(buffered) > 0 && !flushFailed {
					t.Errorf("New reads a log that lacks %v", buffered)
				}
				if st.Restart > 0 && len(newFails) > 0 {
					fail := newFails[0]
					newFails = newFails[1:]
					if fail {
						panic("New")
					}
				}
				l := &ledger{seen: map[int]bool{}}
				for _, id := range log {
					l.seen[id] = true
				}
				return l, nil, nil
			},
			Do: func(_ *Ref[*entry], e *entry) {
				if e.done != nil {
					close(e.done)
					return
				}
				if e.doN > 0 {
					e.doN--
					panic("Do")
				}
				buffered = append(buffered, e.id)
			},
			Flush: func() {
				if len(flushFails) > 0 {
					fail := flushFails[0]
					flushFails = flushFails[1:]
					if flushFailed = fail; fail {
						panic("Flush")
					}
				}
				flushFailed = false
				log, buffered = append(log, buffered...), nil
			},
			OnPoison: func(_ *Ref[*entry], e *entry, _ error) { poisoned = append(poisoned, e.id) },
		})
		if err != nil {
			t.Fatal(err)
		}
		runs := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "by SendRun")
		for i, e := range list {
			send := r.Send
			if runs[i] {
				send = r.SendRun
			}
			if err := send(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		// A stop does not redeliver: let the restarts end first.
		last := &entry{done: make(chan struct{})}
		if err := r.Send(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		<-last.done
		if err := s.StopTree(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(append(log, buffered...), want) {
			t.Fatalf("recorded %v, want %v", append(log, buffered...), want)
		}
		if !slices.Equal(poisoned, wantPoison) {
			t.Fatalf("poisoned %v, want %v", poisoned, wantPoison)
		}
	})
}
