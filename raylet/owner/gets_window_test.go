package owner

import (
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/sched"
	"mobula/wire"
)

// receipts gives what the last step asked to hear, as events.
func receipts(s *script) (out []ClientRead) {
	for _, e := range s.out {
		if e.Kind == Receipt {
			out = append(out, ClientRead{Client: e.Client, Bytes: e.N})
		}
	}
	return out
}

func valueBytes(ms []*wire.Resolved) (n int) {
	for _, m := range ms {
		n += len(m.Result.Value.Data)
	}
	return n
}

// A client that asks for much and reads nothing is sent no more than the window. The rest is answered when it reads, from the store
// where that has the values by then; what it asks for no more is not answered.
func TestAClientThatDoesNotReadIsSentAWindow(t *testing.T) {
	const each, puts, window = 10_000, 100, 50_000
	s := newScript(t, Config{InlineBudget: 200_000, SendWindow: window})
	asked := make(map[ids.ObjectID]bool)
	var wait []ClientRead
	bytes, packed := 0, 0
	for i := range puts {
		put := s.root.Put(uint32(i + 1))
		asked[put] = true
		s.from(driver, &wire.PutValue{ID: put, Value: wire.Value{Data: make([]byte, each)}}, &wire.Get{ID: put, Fetch: true})
		wait = append(wait, receipts(s)...)
		for _, m := range sent[*wire.Resolved](s, driver) {
			bytes += valueBytes([]*wire.Resolved{m})
			delete(asked, m.ID)
		}
		for _, p := range told[objectstore.Pack](s) {
			for _, v := range p.Values {
				packed++
				s.step(FromStore{Msg: objectstore.Packed{ID: v.ID, Size: each}})
			}
		}
	}
	if bytes > window+each || len(wait) == 0 {
		t.Fatalf("it was sent %d bytes, with %d receipts", bytes, len(wait))
	}
	if packed == 0 || s.c.budget.inline > 200_000 {
		t.Errorf("%d values were packed, %d bytes are left", packed, s.c.budget.inline)
	}
	gone := s.root.Put(puts)
	s.from(driver, &wire.Unget{ID: gone})
	if !asked[gone] {
		t.Fatal("the last one was answered")
	}
	delete(asked, gone)
	pinned := 0
	for len(wait) > 0 {
		ev := wait[0]
		wait = wait[1:]
		s.step(ev)
		wait = append(wait, receipts(s)...)
		ms := sent[*wire.Resolved](s, driver)
		if n := valueBytes(ms); n > window+each {
			t.Errorf("it is sent %d bytes at once", n)
		}
		for _, m := range ms {
			if !asked[m.ID] {
				t.Errorf("%v is answered, and was not asked for, or twice", m.ID)
			}
			delete(asked, m.ID)
		}
		for _, p := range told[objectstore.PinForGet](s) {
			if !asked[p.ID] {
				t.Errorf("%v is pinned, and was not asked for, or twice", p.ID)
			}
			delete(asked, p.ID)
			pinned++
		}
	}
	if len(asked) > 0 || pinned == 0 {
		t.Errorf("%d gets are not answered, %d by the store", len(asked), pinned)
	}
	if u := s.c.clients.byID[driver].window; len(u.later) != 0 || s.c.budget.unread != u.bytes || u.bytes != u.fresh {
		t.Errorf("all was read: %+v, %d", u, s.c.budget.unread)
	}
}

// What was put off goes with its client.
func TestAnswersGoWithTheirClient(t *testing.T) {
	s := newScript(t, Config{SendWindow: 1000})
	for i := range 5 {
		s.from(driver, &wire.PutValue{ID: s.root.Put(uint32(i + 1)), Value: wire.Value{Data: make([]byte, 900)}})
	}
	for i := range 5 {
		s.from(worker, &wire.Get{ID: s.root.Put(uint32(i + 1))})
	}
	if len(s.c.clients.byID[worker].window.later) == 0 {
		t.Fatal("nothing was put off")
	}
	s.step(ClientGone{Client: worker, Err: errs.New(errs.CodeDisconnected, "killed")})
	s.step(ClientRead{Client: worker, Bytes: 1 << 20})
	if s.c.budget.unread != 0 {
		t.Errorf("%d bytes are unread", s.c.budget.unread)
	}
}

// A client that is gone and that a late lease names once more is sent nothing: nobody would read it.
func TestWindowOfAClientThatALateLeaseNames(t *testing.T) {
	s := newScript(t, Config{})
	s.from(driver, &wire.PutValue{ID: s.root.Put(1), Value: wire.Value{Data: make([]byte, 100)}})
	s.submit(simple)
	s.step(ClientGone{Client: worker})
	l := s.grant(worker) // the scheduler has not heard yet
	s.from(worker, &wire.Get{ID: s.root.Put(1), Fetch: true})
	if m := sent[*wire.Resolved](s, worker); len(m) != 0 {
		t.Errorf("it is sent %+v", m)
	}
	s.step(FromSched{Msg: sched.Revoked{Lease: l, Err: errs.New(errs.CodeWorkerCrashed, "gone")}})
	if err := s.c.Validate(); err != nil {
		t.Error(err)
	}
}
