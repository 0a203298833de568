package shell

import (
	"bytes"
	"context"
	"os"
	"runtime"
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

// Pulls that are asked for at the same time, of many times what the store holds, all end: by turns, within the store's limit, each byte once, and at no cost
// in memory beside the store.
func TestStressManyPullsThroughALittleStore(t *testing.T) {
	n, size, limit := 100, 2*mib, uint64(50*mib)
	if os.Getenv("MOBULA_STRESS") != "" {
		n, size, limit = 1000, 10*mib, 256*mib
	}
	pipes := transfershell.NewPipes()
	sys := []*actors.System{actors.NewSystem(actors.Config{}), actors.NewSystem(actors.Config{})}
	data := pattern(1, size) // of every object: who sends it needs no store
	var holder *transfershell.Transfer
	var store atomic.Pointer[Store]
	open := func(home ids.Home, to func(objectstore.Event)) *transfershell.Transfer {
		tr, err := transfershell.Open(sys[home-1], transfershell.Options{Config: transfer.DefaultConfig(home), Transport: pipes.Node(home), Store: to})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	holder = open(1, func(ev objectstore.Event) {
		if e, ok := ev.(objectstore.Export); ok {
			holder.Serve(e.To, e.Token, data, nil, func() {})
		}
	})
	r := newRigOf(t, testConfig(limit), spillConfig(t.TempDir()), segment.Config{}, open(2, func(ev objectstore.Event) { store.Load().Deliver(ev) }))
	store.Store(r.store)
	u := r.join(2)
	before := heapInUse()
	ch := make(chan error, n)
	for i := range n {
		r.post(objectstore.Located{ID: put(i), Size: uint64(size), On: []ids.Home{1}})
	}
	for i := range n {
		go func() {
			b, err := u.get(put(i))
			if err == nil && !bytes.Equal(b, data) {
				t.Errorf("object %d has other bytes", i)
			}
			u.unpin(put(i))
			ch <- err
		}()
	}
	for i := range n {
		if err := testkit.Receive(t, "a pull", ch); err != nil {
			t.Error(err)
		}
		if i%50 > 0 {
			continue
		}
		if s := r.stats(); s.Backed > limit || s.FallbackBytes > 0 {
			t.Fatalf("%d bytes have memory and %d lie in files, of a limit of %d", s.Backed, s.FallbackBytes, limit)
		}
		if more := heapInUse() - before; more > 32*mib {
			t.Fatalf("%d bytes are in use beside the store", more)
		}
	}
	if s := r.stats(); s.Imports != uint64(n) || s.ImportedBytes != uint64(n*size) || s.SpilledObjects != 0 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	for _, s := range sys {
		if err := s.StopTree(ctx); err != nil {
			t.Error(err)
		}
	}
	r.close(true)
}

// heapInUse is what the process has in use, without what is garbage.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
