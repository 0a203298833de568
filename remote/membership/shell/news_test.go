package shell

import (
	"reflect"
	"testing"

	"mobula/remote/membership"
)

// A later word about a life takes the place of the one before, and comes where that was.
func TestTheLatestWordIsPassedOn(t *testing.T) {
	n := newNews()
	for _, ev := range []membership.Event{
		membership.Broken{Life: life(2, 1)}, membership.Fenced{Life: life(3, 1)}, membership.Connected{Life: life(2, 1)}, membership.Broken{Life: life(2, 2)},
	} {
		a, ok := aboutTold(ev)
		if !ok {
			t.Fatalf("%T is not told", ev)
		}
		n.add(a, ev)
	}
	<-n.ready
	want := []membership.Event{membership.Connected{Life: life(2, 1)}, membership.Fenced{Life: life(3, 1)}, membership.Broken{Life: life(2, 2)}}
	if got := n.take(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := n.take(); len(got) != 0 {
		t.Errorf("got %+v again", got)
	}
}
