package inbox

import (
	"slices"
	"testing"
)

func TestWhatIsAddedIsTakenOnce(t *testing.T) {
	b := New[int]()
	if got := b.Take(); len(got) != 0 {
		t.Errorf("an empty one gives %v", got)
	}
	b.Add(1, 2)
	b.Add(3)
	<-b.Ready()
	if got := b.Take(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
	select {
	case <-b.Ready():
		t.Error("it is said twice that there is something")
	default:
	}
	b.Add(4)
	<-b.Ready()
	if got := b.Take(); !slices.Equal(got, []int{4}) {
		t.Errorf("got %v", got)
	}
}

func TestInNilNothingComes(t *testing.T) {
	var b *Inbox[int]
	if b.Ready() != nil {
		t.Error("nil has something to wait for")
	}
}
