package membership

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"mobula/internal/ids"
	"mobula/remote"
)

// Loads is the latest load of each node that is not over. The zero value is not ready: NewLoads.
type Loads struct {
	byHome map[ids.Home]Load
}

// NewLoads makes an empty table.
func NewLoads() *Loads { return &Loads{byHome: make(map[ids.Home]Load)} }

// Offer takes a load that is later than the one that is there, and tells whether it is.
func (t *Loads) Offer(l Load) bool {
	was, known := t.byHome[l.Life.Home]
	if known && (l.Life.Epoch < was.Life.Epoch || l.Life.Epoch == was.Life.Epoch && l.Version <= was.Version) {
		return false
	}
	t.byHome[l.Life.Home] = l
	return true
}

// End forgets the loads of a life that is over, and of those before, and tells whether that is news. It keeps that the life is over: others may
// still gossip of it.
func (t *Loads) End(l remote.Life) bool {
	if t.Ended(l) || t.byHome[l.Home].Life.Epoch > l.Epoch {
		return false
	}
	t.byHome[l.Home] = Load{Life: l, Version: ended}
	return true
}

// Ended tells whether a life is over.
func (t *Loads) Ended(l remote.Life) bool {
	was := t.byHome[l.Home]
	return was.Version == ended && l.Epoch <= was.Life.Epoch
}

// ended is later than any load.
const ended = 1<<64 - 1

// All gives the loads, by home.
func (t *Loads) All() []Load {
	out := make([]Load, 0, len(t.byHome))
	for _, home := range slices.Sorted(maps.Keys(t.byHome)) {
		if l := t.byHome[home]; l.Version != ended {
			out = append(out, l)
		}
	}
	return out
}

// Snapshot is all loads, one after the other, for a node that is told all at once; as many as go into so many bytes.
func (t *Loads) Snapshot(limit int) []byte {
	var b []byte
	for _, l := range t.All() {
		m := l.Message()
		if len(b)+len(m)+binary.MaxVarintLen32 > limit {
			break
		}
		b = binary.AppendUvarint(b, uint64(len(m)))
		b = append(b, m...)
	}
	return b
}

// ParseSnapshot reads a Snapshot. With an error it gives what came before the place that cannot be read.
func ParseSnapshot(b []byte) ([]Load, error) {
	r := reader{left: b}
	var out []Load
	for len(r.left) > 0 {
		m := r.bytes(r.number(32))
		if r.bad {
			return out, fmt.Errorf("%w: a snapshot that is cut short after %d loads", ErrMessage, len(out))
		}
		if got, err := ParseMessage(m); err != nil {
			return out, err
		} else if l, ok := got.(Load); ok {
			out = append(out, l)
		}
	}
	return out, nil
}
