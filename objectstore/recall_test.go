package objectstore

import (
	"testing"

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
