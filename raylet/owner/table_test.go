package owner

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// checkTable compares a table with a map, and looks at its order.
func checkTable(t *rapid.T, tb *table, want map[ids.ObjectID]*objRec) {
	if tb.n != len(want) {
		t.Fatalf("counts %d, has %d", tb.n, len(want))
	}
	for id, o := range want {
		if got := tb.find(&id); got != o {
			t.Fatalf("%v: found %p, want %p", id, got, o)
		}
	}
	n, last := 0, uint64(0)
	for i := range tb.slots {
		s := &tb.slots[i]
		if s.o == nil {
			continue
		}
		if n++; s.hash < last || s.hash != hashOf(&s.o.id) || tb.bucket(s.hash) > i {
			t.Fatalf("slot %d: hash %x after %x, home %d", i, s.hash, last, tb.bucket(s.hash))
		}
		last = s.hash
	}
	if n != len(want) {
		t.Fatalf("%d slots are taken, want %d", n, len(want))
	}
	if len(tb.slots) > 0 && tb.slots[len(tb.slots)-1].o != nil {
		t.Fatal("the last slot is taken: a run has no end")
	}
}

// colliding gives names of one hash, the highest: the worst, since their run begins at the last home.
func colliding(n uint64) ids.ObjectID {
	var id ids.ObjectID
	a := n * 2654435761
	binary.LittleEndian.PutUint64(id.Task[4:], a)
	binary.LittleEndian.PutUint64(id.Task[12:], a*0x9e3779b97f4a7c15^0x3011bbb244b7ecd7)
	return id
}

func TestTableIsAMap(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		var tb table
		want := map[ids.ObjectID]*objRec{}
		root := ids.RootTask(1, 1)
		name := func() ids.ObjectID {
			n := uint64(rapid.IntRange(0, 300).Draw(rt, "n"))
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				return colliding(n)
			case 1:
				return root.Put(uint32(n))
			}
			return ids.Derive(root, n).Return(0)
		}
		for range rapid.IntRange(0, 400).Draw(rt, "ops") {
			id := name()
			switch rapid.IntRange(0, 2).Draw(rt, "op") {
			case 0:
				tb.remove(&id)
				delete(want, id)
			default:
				o := &objRec{id: id}
				if old, p := tb.findOrPlace(&id); old == nil {
					tb.enter(o, p)
				} else {
					tb.add(o)
				}
				want[id] = o
			}
		}
		checkTable(rt, &tb, want)
	})
}

// A scan gives what stays once, while others come and go and the table grows and shrinks.
func TestTableScanGoesOnAfterChanges(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		var tb table
		root := ids.RootTask(1, 1)
		stay, seen := map[ids.ObjectID]bool{}, map[ids.ObjectID]int{}
		var goes []ids.ObjectID
		n := uint64(0)
		add := func(stays bool) {
			n++
			id := ids.Derive(root, n).Return(0)
			tb.add(&objRec{id: id})
			if stays {
				stay[id] = true
			} else {
				goes = append(goes, id)
			}
		}
		for range rapid.IntRange(0, 900).Draw(rt, "at the begin") {
			add(rapid.Bool().Draw(rt, "stays"))
		}
		var c cursor
		want := rapid.IntRange(1, 50).Draw(rt, "part")
		for !c.done {
			for _, o := range tb.scan(&c, want, nil) {
				seen[o.id]++
			}
			for range rapid.IntRange(0, 100).Draw(rt, "come") {
				add(false)
			}
			for range min(rapid.IntRange(0, 200).Draw(rt, "go"), len(goes)) {
				id := goes[0]
				tb.remove(&id)
				goes = goes[1:]
			}
			if n > 3000 {
				break // more come than a scan of this part keeps up with
			}
		}
		for id := range stay {
			if c.done && seen[id] != 1 {
				rt.Fatalf("%v was there all the time and is seen %d times", id, seen[id])
			}
		}
		for id, k := range seen {
			if k > 1 {
				rt.Fatalf("%v is seen %d times", id, k)
			}
		}
	})
}

// A table that has been large is small again when what is in it has come and gone since.
func TestTableShrinks(t *testing.T) {
	var tb table
	root := ids.RootTask(1, 1)
	const n = 100_000
	for i := range uint64(n) {
		tb.add(&objRec{id: ids.Derive(root, i).Return(0)})
	}
	large := len(tb.slots)
	if large > 4*n {
		t.Errorf("%d records take %d slots", n, large)
	}
	for i := range uint64(n) {
		id := ids.Derive(root, i).Return(0)
		tb.remove(&id)
	}
	for i := range uint64(4 * n) {
		id := ids.Derive(root, i).Return(0)
		tb.add(&objRec{id: id})
		tb.remove(&id)
	}
	if tb.n != 0 || len(tb.slots) > large/16 {
		t.Errorf("%d records are left in %d slots", tb.n, len(tb.slots))
	}
}

// Names that all collide cost time, not memory.
func TestTableOfCollisions(t *testing.T) {
	var tb table
	const n = 3000
	for i := range uint64(n) {
		tb.add(&objRec{id: colliding(i + 1)})
	}
	if id := colliding(5); tb.bucket(hashOf(&id)) != 1<<tb.bits-1 {
		t.Fatalf("the names collide at %d of %d homes, not at the last", tb.bucket(hashOf(&id)), 1<<tb.bits)
	}
	if len(tb.slots) > 8*n {
		t.Errorf("%d names that collide take %d slots", n, len(tb.slots))
	}
	for i := range uint64(n) {
		id := colliding(i + 1)
		if tb.find(&id) == nil {
			t.Fatalf("%v is not found", id)
		}
	}
}
