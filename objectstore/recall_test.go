package objectstore

import (
	"fmt"
	"slices"
	"testing"

	"mobula/internal/ids"
	"mobula/objectstore/record"
)

// A core may be lost between any two effects of what it recalls: the next one finds the note, or what took its place.
func TestANoteIsThereAtAnyTimeOfItsRecall(t *testing.T) {
	notes := []Note{{Key: NoteKey{N: 7}, Event: DropJob{1}}}
	c, evs := Rebuild(testConfig(16*mib), Replay{
		Epoch: 2, Connected: true, Notes: notes, Entries: []record.Entry{{Record: record.Record{State: record.StateClient, Client: 2, Job: 1}}},
	})
	kept := map[NoteKey]Event{notes[0].Key: notes[0].Event}
	for _, ev := range evs {
		for _, f := range c.Step(1, ev) {
			switch f := f.(type) {
			case Remember:
				kept[f.Key] = f.Event
			case Forget:
				delete(kept, f.Key)
			}
			if len(kept) == 0 {
				t.Fatalf("nothing is noted after %+v", f)
			}
		}
	}
	if len(kept) != 1 || kept[notes[0].Key] != nil {
		t.Errorf("noted are %+v", kept)
	}
}

// A core that is lost before it has recalled all notes leaves them to the next one in the same order: what was let go is not taken for what is wanted.
func TestNotesAreRecalledInOrder(t *testing.T) {
	id := put(1)
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 11)
	for _, ev := range []Event{
		Located{ID: id, Attempt: 1, Size: mib, Meta: []byte{1, 0}, On: []ids.Home{2}}, PinForGet{Client: 11, Job: 1, ID: id}, Free{[]ids.ObjectID{id}}, DropJob{1},
	} {
		w.step(ev)
	}
	want := kindsOf(w)
	if len(want) != 4 {
		t.Fatalf("noted are %v", want)
	}
	for n := range want { // so many notes are recalled before the next core is lost
		c, evs := Rebuild(w.cfg, w.replay(true))
		first := slices.IndexFunc(evs, func(ev Event) bool { _, is := ev.(recalled); return is })
		for _, ev := range evs[:first+n] {
			for _, f := range c.Step(1, ev) {
				switch f.(type) {
				case Remember, Forget:
					w.do(f)
				}
			}
		}
		if got := kindsOf(w); !slices.Equal(got, want) {
			t.Fatalf("after %d of them are recalled noted are %v, want %v", n, got, want)
		}
	}
}

// kindsOf gives the types of what is noted, in order.
func kindsOf(w *world) (out []string) {
	for _, n := range w.notes.List() {
		out = append(out, fmt.Sprintf("%T", n.Event))
	}
	return out
}
