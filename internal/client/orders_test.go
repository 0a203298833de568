package client

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/wire"
)

// callsOf are the numbers of the calls to an actor that were sent, in order.
func (f *fakeNode) callsOf(a ids.ActorID) (seqs []uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.log {
		if s, ok := m.(*wire.Submit); ok && s.Spec.Actor == a {
			seqs = append(seqs, s.Spec.Seq)
		}
	}
	return seqs
}

// A program has counters for the actors that live and for some more, however many it has called: those of actors that have ended go, as their owner says,
// and those of the others count on.
func TestCountersOfEndedActorsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, Config{})
		tc, requests := f.c.Root(), 0
		call := func(a ids.ActorID) {
			t.Helper()
			hs, err := f.c.Submit(t.Context(), &wire.TaskSpec{ID: tc.NextTask(), Kind: wire.TaskActorCall, Actor: a, Opts: &wire.TaskOptions{NumReturns: 1}})
			if err != nil {
				t.Fatal(err)
			}
			hs[0].Release()
		}
		actor := func(n int) ids.ActorID { return ids.ActorID(ids.Derive(ids.RootTask(7, 2), uint64(n))) }
		lives := func(b []byte) bool { id, _ := ids.TaskOf(b); return id[len(id)-1]%8 == 0 } // some in eight
		var called ids.ActorID                                                               // while the node is asked
		f.asked = func(m *wire.Request) *wire.Reply {
			var r state.UncountedRequest
			if err := cbor.Unmarshal(m.Body, &r); err != nil || m.Method != state.MethodUncounted || r.Job != 7 || len(r.Actors) > state.MaxUncounted {
				t.Errorf("%s asks %d actors of job %d: %v", m.Method, len(r.Actors), r.Job, err)
			}
			if requests++; requests == 1 {
				return &wire.Reply{Req: m.Req, Err: errs.New(errs.CodeBacklog, "busy")}
			}
			var un state.Uncounted
			for i, b := range r.Actors {
				if id, _ := ids.TaskOf(b); !lives(b) {
					un.Actors = append(un.Actors, i)
					called = ids.ActorID(id)
				}
			}
			o := tc.orderOf(called) // a call that comes between
			o.mu.Lock()
			o.seq++
			o.mu.Unlock()
			body, _ := cbor.Marshal(un)
			return &wire.Reply{Req: m.Req, Body: body}
		}
		const n = 10 * fewOrders
		most := 0
		for i := range n {
			call(actor(i))
			if i%256 == 0 {
				f.c.Flush()
				synctest.Wait()
			}
			if m := tc.orders.many; m != nil {
				most = max(most, len(m.of))
			}
		}
		f.c.Flush()
		synctest.Wait()
		living := 0
		for i := range n {
			if b := ids.TaskID(actor(i)).Bytes(); lives(b) {
				living++
			}
		}
		if requests < 3 || most > 2*living+2*fewOrders+256 || living < n/16 {
			t.Errorf("%d requests; %d actors of %d live, and there were %d counters", requests, living, n, most)
		}
		for i := range 3 * 8 {
			call(actor(i))
		}
		f.c.Flush()
		synctest.Wait()
		for i := range 3 * 8 {
			a, want := actor(i), []uint64{1, 1}
			if lives(ids.TaskID(a).Bytes()) {
				want = []uint64{1, 2}
			}
			if got := f.callsOf(a); !slices.Equal(got, want) {
				t.Errorf("the calls of actor %d have the numbers %v, want %v", i, got, want)
			}
		}
		if tc.orderOf(called).number() != 2 {
			t.Errorf("the counter of an actor that was called meanwhile is at %d", tc.orderOf(called).number())
		}
	})
}
