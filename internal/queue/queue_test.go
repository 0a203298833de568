package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

func TestOrder(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		var q Queue[int]
		var model []int
		for _, op := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(rt, "0 and 1 pop, 2 pushes in front, 3 takes one off, 4 deletes some, 5 inserts, others push") {
			switch x := len(model); {
			case op == 4:
				third := func(x int) bool { return x%3 == 0 }
				q.DeleteFunc(third)
				model = slices.DeleteFunc(model, third)
			case op == 3 && x > 0:
				i := rapid.IntRange(0, x-1).Draw(rt, "which")
				if got := q.Remove(i); got != model[i] {
					rt.Fatalf("took off %d, want %d", got, model[i])
				}
				model = slices.Delete(model, i, i+1)
			case op == 5:
				i := rapid.IntRange(0, x).Draw(rt, "where")
				q.Insert(i, x)
				model = slices.Insert(model, i, x)
			case op > 5:
				q.Push(x)
				model = append(model, x)
			case op == 2:
				q.PushFront(x)
				model = slices.Insert(model, 0, x)
			case len(model) > 0:
				if front, got := q.Front(), q.Pop(); front != model[0] || got != model[0] {
					rt.Fatalf("%d is in front, popped %d, want %d", front, got, model[0])
				}
				model = model[1:]
			}
			if q.Len() != len(model) || !slices.Equal(q.All(), model) {
				rt.Fatalf("the queue has %d: %v, want %v", q.Len(), q.All(), model)
			}
		}
	})
}

// A queue that never runs empty takes no more room than what is in it needs, and keeps nothing that was taken off.
func TestRoomIsUsedAgain(t *testing.T) {
	var q Queue[*int]
	for range 10 {
		q.Push(new(int))
	}
	for range 100_000 {
		q.Push(new(int))
		q.Pop()
	}
	if n := cap(q.items); n > 64 {
		t.Errorf("a queue of 10 has room for %d", n)
	}
	for i, x := range q.items[:cap(q.items)] {
		if live := i >= q.head && i < len(q.items); (x != nil) != live {
			t.Errorf("place %d of %d: kept %v, in the queue %v", i, cap(q.items), x != nil, live)
		}
	}
	if n := testing.AllocsPerRun(100, func() { q.Push(nil); q.Pop() }); n != 0 {
		t.Errorf("a push and a pop allocate %v times", n)
	}
}
