package node

import (
	"slices"
	"testing"

	"mobula/remote"
)

// A node is dead once its last life is over, whether it was ever met or not, until another life of it is heard of.
func TestANodeIsDeadWithItsLastLife(t *testing.T) {
	l := newLives()
	life := func(epoch uint64) remote.Life { return remote.Life{Home: 7, Epoch: epoch} }
	for _, step := range []struct {
		what string
		do   func()
		dead bool
	}{
		{"nothing is known of it", func() {}, false},
		{"a life is over that was never met", func() { l.end(life(2)) }, true},
		{"an earlier one is shown late", func() { l.heard(life(1)) }, true},
		{"it begins another", func() { l.heard(life(3)) }, false},
		{"the verdict on one before comes again", func() { l.end(life(2)) }, false},
		{"that one is over too", func() { l.end(life(3)) }, true},
	} {
		if step.do(); l.dead(7) != step.dead {
			t.Errorf("%s: dead is %v", step.what, l.dead(7))
		}
	}
	if !l.over(life(3)) || l.over(life(4)) || l.dead(8) {
		t.Error("what is over goes beyond what was said")
	}
	l.end(remote.Life{Home: 2, Epoch: 1})
	if got := l.verdicts(); !slices.Equal(got, []remote.Life{{Home: 2, Epoch: 1}, life(3)}) {
		t.Errorf("the verdicts are %v", got)
	}
}
