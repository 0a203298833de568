package shell

import (
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
)

// BenchmarkPutGet128K is a put and a get of 128 KiB through the actor.
func BenchmarkPutGet128K(b *testing.B) {
	r := newRig(b, objectstore.DefaultConfig(1<<30), spillConfig(b.TempDir()), segment.Config{})
	u := r.join(1)
	data := pattern(1, 128<<10)
	for i := 0; b.Loop(); i++ {
		id := root.Put(uint32(i))
		u.put(id, data)
		if _, err := u.get(id); err != nil {
			b.Fatal(err)
		}
		u.unpin(id)
		r.post(objectstore.Free{IDs: []ids.ObjectID{id}})
	}
	b.StopTimer()
	r.close(true)
}
