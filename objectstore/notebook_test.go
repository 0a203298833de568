package objectstore

import (
	"slices"
	"testing"
)

// What takes the place of a note stays before the notes behind that, whether the note is still there or not.
func TestNotesKeepTheirPlaces(t *testing.T) {
	key := func(n uint64) NoteKey { return NoteKey{N: n} }
	var n Notebook
	for i := uint64(1); i <= 4; i++ {
		n.Put(Remember{Key: key(i)})
	}
	n.Put(Remember{Key: key(1), Place: key(1)}) // recalled, and noted as it was
	n.Put(Remember{Key: key(12), Place: key(2)})
	n.Put(Remember{Key: key(22), Place: key(2)})
	n.Drop(key(2))
	n.Put(Remember{Key: key(3)}) // not recalled
	n.Put(Remember{Key: key(5), Place: key(99)})
	var got []uint64
	for _, note := range n.List() {
		got = append(got, note.Key.N)
	}
	if want := []uint64{1, 12, 22, 4, 3, 5}; !slices.Equal(got, want) {
		t.Errorf("the notes are %v, want %v", got, want)
	}
}
