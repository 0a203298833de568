package owner

import (
	"slices"
	"strings"
	"testing"

	"mobula/objectstore"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// A value that is made again may lie elsewhere than the first time: it is read back from the record that
// has it. Here it was in the store, then in the message.
func TestAValueMadeAgainIsReadBack(t *testing.T) {
	s := newScript(t, Config{InlineBudget: 1500})
	a := s.makeStored(simple)
	id := a.ID.Return(0)
	s.step(FromStore{objectstore.Lost{ID: id}})
	s.from(driver, &wire.Get{ID: id})
	if s.state(a) != task.PendingNode {
		t.Fatalf("the task is %v", s.state(a))
	}
	l := s.grant(worker)
	s.done(worker, l, s.executed(worker), inline(strings.Repeat("x", 2000)))
	if p := told[objectstore.Pack](s); len(p) != 1 || len(p[0].Values) != 1 {
		t.Fatalf("over the budget: %+v", p)
	}
	s.step(FromStore{objectstore.Packed{ID: id, Size: 2000}})
	s.from(driver, &wire.Get{ID: id, Fetch: true})
	s.step(FromStore{objectstore.Lost{ID: id, Client: driver}})
	for reads := 0; ; reads++ {
		i := slices.IndexFunc(s.out, func(e Effect) bool { return e.Kind == Fetch })
		if i < 0 {
			break
		}
		if reads > 5 {
			t.Fatal("it is read for ever")
		}
		s.step(Fetched{Token: s.out[i].Token, Record: s.logs[uint64(s.out[i].N)]})
	}
	r := sent[*wire.Resolved](s, driver)
	if len(r) != 1 || r[0].Result.Kind != wire.ResultInline || len(r[0].Result.Value.Data) != 2000 {
		t.Errorf("the get is answered with %+v", r)
	}
}
