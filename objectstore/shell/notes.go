package shell

import (
	"cmp"
	"maps"
	"slices"

	"mobula/objectstore"
)

// notebook keeps what cores asked to remember, in order.
type notebook struct {
	notes map[objectstore.NoteKey]noted
	seq   uint64
}

type noted struct {
	seq uint64
	ev  objectstore.Event
}

func (n *notebook) put(k objectstore.NoteKey, ev objectstore.Event) {
	if n.notes == nil {
		n.notes = make(map[objectstore.NoteKey]noted)
	}
	n.seq++
	n.notes[k] = noted{n.seq, ev}
}

func (n *notebook) drop(k objectstore.NoteKey) { delete(n.notes, k) }

// list gives the notes in order.
func (n *notebook) list() []objectstore.Note {
	keys := slices.SortedFunc(maps.Keys(n.notes), func(a, b objectstore.NoteKey) int { return cmp.Compare(n.notes[a].seq, n.notes[b].seq) })
	out := make([]objectstore.Note, len(keys))
	for i, k := range keys {
		out[i] = objectstore.Note{Key: k, Event: n.notes[k].ev}
	}
	return out
}
