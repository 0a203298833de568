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
	s.step(FromStore{objectstore.Lost{ID: put, Client: driver, Unsealed: []objectstore.Unsealed{{Client: driver}, {Client: driver, Attempt: 1}}}})
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
	s.step(FromStore{objectstore.Lost{ID: put, Client: driver, Unsealed: []objectstore.Unsealed{{Client: driver, Attempt: 2}}}})
	if o := s.c.object(put); o == nil || o.state != object.Failed {
		t.Errorf("another attempt's extent stands for it: %+v", o)
	}
}
