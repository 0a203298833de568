package cluster

import (
	"slices"
	"testing"

	"mobula/internal/ids"
)

func TestAudience(t *testing.T) {
	var others []ids.Home
	for id := range ids.Home(small + 1) {
		others = append(others, id+2)
	}
	a, me := NewAudience(), Node{ID: 1}
	wants := func(what string, want ...ids.Home) {
		t.Helper()
		to := a.Of(&me, others)
		if !slices.Equal(to, want) {
			t.Errorf("%s: %v are told, want %v", what, to, want)
		}
		a.Told(&me, to)
	}
	wants("at first", others...)
	wants("then")
	if begins, again := a.Heard(&Node{ID: 7, Chooses: true}), a.Heard(&Node{ID: 7, Chooses: true}); !begins || again {
		t.Errorf("that it begins to choose is heard: %v, and again: %v", begins, again)
	}
	if a.Heard(&Node{ID: 8}) {
		t.Error("one that does not choose begins to")
	}
	wants("one chooses", 7)
	wants("and goes on", 7)
	me.Chooses = true
	wants("this one begins to choose", others...)
	wants("and goes on", 7)
	a.Heard(&Node{ID: 7})
	a.Gone(9)
	wants("nobody chooses, and a node is new", 9)
	others = others[:small]
	wants("there are few", others...)
}
