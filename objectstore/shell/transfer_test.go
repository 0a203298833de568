package shell

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/remote/transfer"
	transfershell "mobula/remote/transfer/shell"
)

// newTransfers makes stores of homes 1 to n on connections in memory.
func newTransfers(t *testing.T, n int, limit uint64) ([]*rig, []*user, func()) {
	pipes := transfershell.NewPipes()
	var systems []*actors.System
	var rigs []*rig
	var users []*user
	for home := ids.Home(1); home <= ids.Home(n); home++ {
		var store atomic.Pointer[Store]
		sys := actors.NewSystem(actors.Config{})
		systems = append(systems, sys)
		tr, err := transfershell.Open(sys, transfershell.Options{
			Config: transfer.DefaultConfig(home), Transport: pipes.Node(home), Store: func(ev objectstore.Event) { store.Load().Deliver(ev) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r := newRigOf(t, testConfig(limit), spillConfig(t.TempDir()), segment.Config{}, tr)
		store.Store(r.store)
		rigs, users = append(rigs, r), append(users, r.join(ids.ClientID(home)))
	}
	return rigs, users, func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
		defer cancel()
		for _, sys := range systems {
			if err := sys.StopTree(ctx); err != nil {
				t.Error(err)
			}
		}
		for _, r := range rigs {
			r.close(true)
		}
	}
}

// Stores move objects over connections, spilled ones too.
func TestStoresOnConnections(t *testing.T) {
	rigs, users, end := newTransfers(t, 3, 16*mib)
	const n = 8 // more than a store holds
	size := uint64(3 * mib)
	for i := range n {
		users[0].put(put(i), pattern(i, int(size)))
		rigs[1].post(objectstore.Located{ID: put(i), Size: size, On: []ids.Home{9, 1}})
		rigs[2].post(objectstore.Located{ID: put(i), Size: size, On: []ids.Home{2, 1}}) // the second node has it as soon as it asks
	}
	for i := range n {
		for _, u := range users[1:] {
			b, err := u.get(put(i))
			if err != nil || !bytes.Equal(b, pattern(i, int(size))) {
				t.Fatalf("object %d: %d bytes, %v", i, len(b), err)
			}
			u.unpin(put(i))
		}
	}
	for _, r := range rigs[1:] {
		if s := r.stats(); s.Imports < n || s.SpilledObjects != 0 || s.Lost != 0 {
			t.Errorf("%+v", s)
		}
	}
	end()
}

// What is larger than a store allows at once goes through it one after the other.
func TestManyImportsThroughLittleMemory(t *testing.T) {
	rigs, users, end := newTransfers(t, 2, 8*mib)
	const n = 40
	ch := make(chan error, n)
	for i := range n {
		users[0].put(put(i), pattern(i, mib))
		rigs[1].post(objectstore.Located{ID: put(i), Size: mib, On: []ids.Home{1}})
	}
	for i := range n {
		go func() {
			b, err := users[1].get(put(i))
			if err == nil && !bytes.Equal(b, pattern(i, mib)) {
				t.Errorf("object %d has other bytes", i)
			}
			users[1].unpin(put(i))
			ch <- err
		}()
	}
	for range n {
		if err := <-ch; err != nil {
			t.Error(err)
		}
	}
	end()
}
