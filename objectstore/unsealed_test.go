package objectstore

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

// A node is killed after the owner has logged that an object is sealed and before the store was told. Whoever asks the next
// store for it first is told which extent the object is in, so that the owner can seal it.
func TestWhoAsksForWhatIsUnsealedIsToldWhereItIs(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1, 2)
	r := w.create(1, put(1), 3, mib, ids.TaskID{})
	w.relist(0)
	m := w.created[r]
	w.write(1, 3, m)
	w.crash(false)
	w.step(Drained{Epoch: w.epoch})
	w.join(1, 2)
	w.step(PinForGet{Client: 2, ID: put(1)})
	w.step(PinArgs{Job: 1, Task: root, Attempt: 1, Worker: 2, IDs: []ids.ObjectID{put(1)}})
	if len(w.lost) != 2 {
		t.Fatalf("answers: %+v", w.lost)
	}
	for _, l := range w.lost {
		if !slices.Equal(l.Unsealed, []Unsealed{{Client: 1, Attempt: 3}}) {
			t.Errorf("told is %+v", l.Unsealed)
		}
	}
	w.seal(1, 3, m, mib) // by the owner
	w.step(SealObject{Client: 1, ID: put(1), Attempt: 3, Size: mib, Meta: []byte{3, 7}})
	w.step(PinForGet{Client: 2, ID: put(1)})
	if len(w.lost) != 2 || w.c.counts.Sealed != 1 {
		t.Errorf("sealed %d times, lost: %+v", w.c.counts.Sealed, w.lost[2:])
	}
}

// So is the owner whose reader is on another node: that node's store could not get the object, and the owner asks the one that is to have it.
func TestWhoReadsWhatIsUnsealedOnAnotherNodeIsToldWhereItIs(t *testing.T) {
	w := newWorld(t, testConfig(16*mib))
	w.join(1)
	r := w.create(1, put(1), 3, mib, ids.TaskID{})
	w.relist(0)
	w.write(1, 3, w.created[r])
	w.crash(false)
	w.step(Drained{Epoch: w.epoch})
	w.join(1)
	var said []Lost
	for _, f := range w.c.Step(w.now, Located{ID: put(1), Attempt: 3, Size: mib, Meta: []byte{3, 7}}) {
		if to, ok := f.(ToOwner); ok {
			said = append(said, to.Msg.(Lost))
		}
	}
	if len(said) != 1 || said[0].Copy != 3 || !slices.Equal(said[0].Unsealed, []Unsealed{{Client: 1, Attempt: 3}}) {
		t.Errorf("the owner is told %+v", said)
	}
}

// What a client was granted that is gone is dropped at its owner's word, told twice where the store's core was lost. An attempt of the same number may have
// begun anew on another client, since a driver had submitted its task again: what that one makes is not dropped, at any time.
func TestWhatAClientLeftIsDroppedAloneThatClients(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		w := newWorld(t, testConfig(16*mib))
		w.join(1)
		r := w.create(1, put(1), 1, mib, ids.TaskID{})
		w.relist(0)
		w.write(1, 1, w.created[r])
		w.crash(false)
		w.step(Drained{Epoch: w.epoch})
		delete(w.owned, owner{id: put(1), attempt: 1, client: 1})
		w.step(ClientGone{Client: 1})
		w.join(2)
		drop := DropAttempt{ID: put(1), Attempt: 1, Client: 1}
		r = w.create(2, put(1), 1, mib, ids.TaskID{})
		w.step(drop)
		w.relist(0)
		m := w.created[r]
		if m == nil || m.Err != nil {
			t.Fatalf("the create is answered with %+v", m)
		}
		w.write(2, 1, m)
		if sealed {
			w.seal(2, 1, m, mib)
		}
		if w.step(drop); !sealed {
			w.seal(2, 1, m, mib)
		}
		w.step(PinForGet{Client: 2, ID: put(1)})
		if len(w.lost) != 0 {
			t.Errorf("sealed (%v): lost is %+v", sealed, w.lost)
		}
	}
}
