package shell

import (
	"fmt"
	"math/rand/v2"

	"mobula/objectstore/spill"
)

// A target is identified by a number that the node keeps in its session there; spill.Location.Target is that number. It stays the same wherever
// the target is in the list after a restart of the node. Within the spiller a target is identified by its index.

// numbered is a storage that keeps the number.
type numbered interface {
	// Number is what SetNumber has written, in this life or before.
	Number() (n uint16, ok bool)
	SetNumber(n uint16) error
}

// number gives each target its number. Without a node, which could come back with another list, it is the index. A new number is
// random: the next free one was likely used by a target that is not in the list now.
func (s *Spiller) number() error {
	s.places = make(map[uint16]uint16, len(s.targets))
	var fresh []*target
	for _, t := range s.targets {
		st, ok := t.storage.(numbered)
		if s.cfg.Node == "" || !ok {
			s.place(t, t.n)
			continue
		}
		n, ok := st.Number()
		if _, taken := s.places[n]; !ok || taken {
			fresh = append(fresh, t)
			continue
		}
		s.place(t, n)
	}
	for _, t := range fresh {
		n := uint16(rand.Uint32())
		for _, taken := s.places[n]; taken; _, taken = s.places[n] {
			n = uint16(rand.Uint32())
		}
		if err := t.storage.(numbered).SetNumber(n); err != nil {
			return fmt.Errorf("spill target %s: %w", t.url.Redacted(), err)
		}
		s.place(t, n)
	}
	return nil
}

func (s *Spiller) place(t *target, n uint16) {
	t.number = n
	s.places[n] = t.n
}

// Has tells whether the target of a location is one of the node's.
func (s *Spiller) Has(l spill.Location) bool {
	_, ok := s.places[l.Target]
	return ok
}

// toIndex is a location with the target's index; false if no target has its number.
func (s *Spiller) toIndex(l spill.Location) (spill.Location, bool) {
	at, ok := s.places[l.Target]
	l.Target = at
	return l, ok
}
