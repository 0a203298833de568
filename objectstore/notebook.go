package objectstore

import (
	"cmp"
	"maps"
	"slices"
)

// Notebook keeps what cores ask to remember, in order.
type Notebook struct {
	notes map[NoteKey]noted
	seq   uint64
}

type noted struct {
	seq, behind uint64 // behind the first of those with the same seq, in order
	ev          Event
}

// Put takes a note.
func (n *Notebook) Put(r Remember) {
	if n.notes == nil {
		n.notes = make(map[NoteKey]noted)
	}
	n.seq++
	at := noted{n.seq, 0, r.Event}
	if of, is := n.notes[r.Place]; is {
		at.seq, at.behind = of.seq, n.seq
	}
	n.notes[r.Key] = at
}

// Drop forgets one.
func (n *Notebook) Drop(k NoteKey) { delete(n.notes, k) }

// Len counts them.
func (n *Notebook) Len() int { return len(n.notes) }

// List gives the notes in order.
func (n *Notebook) List() []Note {
	keys := slices.SortedFunc(maps.Keys(n.notes), func(a, b NoteKey) int {
		x, y := n.notes[a], n.notes[b]
		return cmp.Or(cmp.Compare(x.seq, y.seq), cmp.Compare(x.behind, y.behind))
	})
	out := make([]Note, len(keys))
	for i, k := range keys {
		out[i] = Note{Key: k, Event: n.notes[k].ev}
	}
	return out
}
