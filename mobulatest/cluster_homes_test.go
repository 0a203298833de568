package mobulatest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"mobula"
)

// lent is a value with a reference in it.
type lent struct{ Of mobula.Ref[string] }

// lentActor is a value with an actor's handle in it.
type lentActor struct{ Of mobula.ActorRef[tally] }

// passed puts a value for another program, and gives that the reference to it. It lets go of the value when the other has got it.
func passed[T any](t *testing.T, from, to context.Context, v T) mobula.Ref[T] {
	t.Helper()
	r, err := mobula.Put(from, v)
	if err != nil {
		t.Fatal(err)
	}
	in, err := mobula.Put(to, struct{ R mobula.Ref[T] }{r})
	if err != nil {
		t.Fatal(err)
	}
	got, err := in.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.R.Get(to); err != nil {
		t.Fatal(err)
	}
	r.Release()
	in.Release()
	return got.R
}

// A reference goes from one node's program to another's and on to a third: each holds what it has, whoever has let go of it. When the first one's node is killed, who has
// not read the value gets an error that names the node.
func TestAReferenceGoesFromHomeToHome(t *testing.T) {
	c := Cluster(t, 3)
	var ctxs []context.Context
	for i := range 3 {
		ctxs = append(ctxs, limit(t, c.Connect(i).Context(t.Context())))
	}
	hand := func(text string) mobula.Ref[string] {
		second := passed(t, ctxs[1], ctxs[2], text)
		box, err := passed(t, ctxs[2], ctxs[0], lent{second}).Get(ctxs[0])
		if err != nil {
			t.Fatal(err)
		}
		second.Release()
		return box.Of
	}
	for _, text := range []string{"small", strings.Repeat("large", 100_000)} {
		if got, err := hand(text).Get(ctxs[0]); err != nil || got != text {
			t.Errorf("the third gets %.20q, %v", got, err)
		}
	}
	unread := hand("unread")
	c.Kill(1)
	if _, err := unread.Get(ctxs[0]); !errors.Is(err, mobula.ErrOwnerDied) || !strings.Contains(err.Error(), "its home, is dead") {
		t.Errorf("after the kill of its node: %v", err)
	}
}

// A call of an actor of a program of another node is refused, and the error says why.
func TestAnActorOfAnotherHomeIsRefused(t *testing.T) {
	c := Cluster(t, 2)
	here, there := limit(t, c.Connect(0).Context(t.Context())), limit(t, c.Connect(1).Context(t.Context()))
	a, err := tallyType.Spawn(there)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tallyAdd.Go(there, a, mobula.V(1)).Get(there); err != nil {
		t.Fatal(err)
	}
	far, err := passed(t, there, here, lentActor{a}).Get(here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tallyAdd.Go(here, far.Of, mobula.V(1)).Get(here); !errors.Is(err, mobula.ErrActorUnavailable) || !strings.Contains(err.Error(), "is of home 1, which this node, of home 0, does not reach") {
		t.Errorf("its call: %v", err)
	}
}
