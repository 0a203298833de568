package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/wire"
)

// Whoever asks whether an object is made learns whether it is on his node, so that he can have it brought.
func TestAnAnswerSaysWhetherAnObjectIsElsewhere(t *testing.T) {
	const there = ids.ClientID(1<<40 | 5)
	s := newScript(t, Config{})
	s.step(ClientJoined{Client: there, Role: wire.RoleWorker})
	spec := s.submit(simple)
	id := spec.ID.Return(0)
	says := func(when string, cl ids.ClientID, want bool) {
		t.Helper()
		if r := sent[*wire.Resolved](s, cl); len(r) != 1 || r[0].ID != id || r[0].Result.Kind != wire.ResultStored || r[0].Elsewhere != want {
			t.Fatalf("%s %v is told %+v, want elsewhere %v", when, cl, r, want)
		}
	}
	s.from(driver, &wire.Get{ID: id})
	l := s.grant(there)
	x := s.executed(there)
	s.from(there, &wire.Seal{ID: id, Attempt: x.Attempt, Size: 8},
		&wire.Done{Task: spec.ID, Attempt: x.Attempt, Lease: l, Results: []wire.Result{stored()}, Times: wire.Times{Started: 1, Ended: 9e6}})
	says("when it is made", driver, true)
	s.from(there, &wire.AddRef{ID: id}, &wire.Get{ID: id})
	says("where it was made", there, false)
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	s.step(FromStore{Msg: objectstore.Imported{ID: id, Attempt: x.Attempt}})
	s.from(driver, &wire.Get{ID: id})
	says("when it was brought", driver, false)
}
