package owner

import (
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/raylet/owner/object"
	"mobula/wire"
)

// The log says that a put is sealed, the store was killed before it heard of it: a get that comes before the client that wrote
// it says so again has the owner seal it, and gets its value.
func TestOwnerSealsWhatOnlyItsLogKnowsSealed(t *testing.T) {
	s := newScript(t, Config{})
	put := s.root.Put(1)
	seal := &wire.Seal{ID: put, Attempt: 1, Size: 8, Value: wire.Value{Meta: []byte("m")}}
	s.from(driver, seal)
	s.rebuild(7)
	h := holds(7)
	h.Handles, h.Gets = []ids.ObjectID{put}, []wire.Get{{ID: put, Fetch: true}}
	s.from(driver, h)
	s.from(worker, holds(7))
	s.from(worker2, holds(7))
	told[objectstore.PinForGet](s)
	s.step(FromStore{Msg: objectstore.Lost{ID: put, Client: driver, Unsealed: []objectstore.Unsealed{{Client: driver}, {Client: driver, Attempt: 1}}}})
	if m := told[objectstore.SealObject](s); len(m) != 1 || m[0].Client != driver || m[0].Attempt != 1 || m[0].Size != 8 || string(m[0].Meta) != "m" {
		t.Fatalf("sealed is %+v", m)
	}
	if p := told[objectstore.PinForGet](s); len(p) != 1 || p[0].Client != driver {
		t.Errorf("asked again is %+v", p)
	}
	if o := s.c.object(put); o == nil || o.state != object.Stored || s.c.stats.Lost != 0 {
		t.Errorf("the object is %+v, lost are %d", o, s.c.stats.Lost)
	}
	s.from(driver, seal) // again, as the client does: it may be the first that the store hears
	if m := told[objectstore.SealObject](s); len(m) != 1 {
		t.Errorf("told again is %+v", m)
	}
	s.step(FromStore{Msg: objectstore.Lost{ID: put, Client: driver, Unsealed: []objectstore.Unsealed{{Client: driver, Attempt: 2}}}})
	if o := s.c.object(put); o == nil || o.state != object.Failed {
		t.Errorf("another attempt's extent stands for it: %+v", o)
	}
}

// A client that has sealed an object is gone before the store heard of the seal: the owner says so when it is asked. What was not sealed is dropped.
func TestOwnerSealsWhatAGoneClientSealed(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(simple)
	l := s.grant(worker)
	x := s.executed(worker)
	id := spec.ID.Return(0)
	s.from(worker, &wire.Seal{ID: id, Attempt: x.Attempt, Size: 8, Value: wire.Value{Meta: []byte("m")}})
	s.done(worker, l, x, wire.Result{Kind: wire.ResultStored, Size: 8})
	s.step(ClientGone{Client: worker})
	put := ids.Derive(s.root, 99).Put(1)
	left := []objectstore.Left{{ID: id, Attempt: x.Attempt, Client: worker}, {ID: id, Attempt: x.Attempt + 1, Client: worker}, {ID: put, Attempt: 1, Client: worker}}
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Left: left}})
	if m := told[objectstore.SealObject](s); len(m) != 1 || m[0].ID != id || m[0].Client != worker || m[0].Attempt != x.Attempt || m[0].Size != 8 || string(m[0].Meta) != "m" {
		t.Errorf("sealed is %+v", m)
	}
	if m := told[objectstore.DropAttempt](s); len(m) != 2 || m[0] != (objectstore.DropAttempt{ID: id, Attempt: x.Attempt + 1, Client: worker}) || m[1] != (objectstore.DropAttempt{ID: put, Attempt: 1, Client: worker}) {
		t.Errorf("dropped is %+v", m)
	}
	s.step(FromStore{Node: 5, Msg: objectstore.Inventory{Job: 1, Asked: true, Left: left[:1]}})
	if m := told[objectstore.DropAttempt](s); len(m) != 1 {
		t.Errorf("on another node dropped is %+v", m)
	}
}

// The log has an item of an attempt that went with its node. The attempt after that has another number: what its worker leaves unsealed would be taken
// for the item that the first one sealed.
func TestANewAttemptIsNotTakenForOneOfTheLog(t *testing.T) {
	s := newScript(t, Config{})
	spec := s.submit(&wire.TaskOptions{Func: "stream", NumReturns: wire.Streaming, MaxRetries: -1})
	s.grant(worker)
	x, item := s.executed(worker), spec.ID.Return(0)
	s.from(worker, &wire.Seal{ID: item, Attempt: x.Attempt, Size: 8})
	h := holds(1)
	h.Handles = []ids.ObjectID{spec.ID.Stream(), item}
	s.answered(1, map[ids.ClientID]*wire.Holdings{driver: h}) // no worker has the task any more
	s.grant(worker2)
	if again := s.executed(worker2); again.Attempt != x.Attempt+1 {
		t.Errorf("attempt %d runs after attempt %d", again.Attempt, x.Attempt)
	}
	s.step(FromStore{Msg: objectstore.Inventory{Job: 1, Asked: true, Left: []objectstore.Left{{ID: item, Attempt: x.Attempt + 1, Client: worker2}}}})
	if m := told[objectstore.SealObject](s); len(m) != 0 {
		t.Errorf("sealed is %+v", m)
	}
}
