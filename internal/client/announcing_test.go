package client

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/ids"
	"mobula/wire"
)

func another(t *testing.T) *fakeNode {
	return newFake(t, Config{Welcome: &wire.Welcome{Client: 4, Job: 8, Root: ids.RootTask(8, 1)}})
}

// A reference to another program's object leaves when that program's owner has heard of the object.
func TestAValueWaitsForTheOwnersOfOtherPrograms(t *testing.T) {
	here, there := newFake(t, Config{}), another(t)
	for range 3 {
		h, err := there.c.Put(t.Context(), wire.Value{Data: []byte("there")})
		if err != nil {
			t.Fatal(err)
		}
		here.c.AnnounceOthers(t.Context(), []ids.ObjectID{h.ID(), h.ID()})
		there.mu.Lock()
		if !there.held[h.ID()] {
			t.Errorf("its owner has not heard of object %v", h.ID())
		}
		there.mu.Unlock()
	}
	if n := here.c.Handles(); n != 0 {
		t.Errorf("%d handles are held here", n)
	}
	there.c.Flush()
	if n := there.c.Handles(); n != 3 {
		t.Errorf("%d handles are held there, want those of the 3 puts", n)
	}
}

// Its own objects, those of programs elsewhere and of one that was closed are nothing to wait for.
func TestAValueWaitsForNobodyElse(t *testing.T) {
	here, there := newFake(t, Config{}), another(t)
	if err := there.c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	here.c.AnnounceOthers(t.Context(), []ids.ObjectID{ids.RootTask(7, 1).Put(1), ids.RootTask(8, 1).Put(1), ids.RootTask(9, 1).Put(1)})
	here.mu.Lock()
	defer here.mu.Unlock()
	if len(here.log) > 0 {
		t.Errorf("it has asked %v", here.log)
	}
}

// A program whose node does not answer is waited for no longer than its patience, and than the caller wants.
func TestAValueDoesNotWaitForASilentOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := newFake(t, Config{}), another(t)
		there.mu.Lock()
		there.mute = true
		there.mu.Unlock()
		from, put := time.Now(), []ids.ObjectID{ids.RootTask(8, 1).Put(1)}
		here.c.AnnounceOthers(t.Context(), put)
		if d := time.Since(from); d != announcePatience {
			t.Errorf("it has waited for %v, want %v", d, announcePatience)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		from = time.Now()
		here.c.AnnounceOthers(ctx, put)
		if d := time.Since(from); d != 0 {
			t.Errorf("a call that was cancelled has waited for %v", d)
		}
	})
}
