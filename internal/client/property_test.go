package client

import (
	"fmt"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// TestHoldingsMatchTheNode does random things and compares, whenever all is quiet, what
// the client says it holds with what a node has counted; in the end nothing is left.
func TestHoldingsMatchTheNode(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		f := newFake(t, Config{CacheBytes: 4 << 10})
		var users []*Handle // one entry a user
		var reads []Data
		pick := func() int { return rapid.IntRange(0, len(users)-1).Draw(rt, "which") }
		resolved := map[ids.ObjectID]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				h, err := f.c.Put(t.Context(), wire.Value{Data: make([]byte, rapid.SampledFrom([]int{0, 1, 900, 1500}).Draw(rt, "size"))})
				if err != nil {
					rt.Fatal(err)
				}
				resolved[h.ID()] = true
				users = append(users, h)
			},
			"submit": func(rt *rapid.T) {
				spec, hs := f.submit(&wire.TaskOptions{NumReturns: rapid.Int32Range(1, 3).Draw(rt, "n")})
				users = append(users, hs...)
				f.c.Flush()
				f.until("the submit", func() bool { return f.held[spec.ID.Return(0)] })
				for i, h := range hs {
					if resolved[h.ID()] = true; i%2 == 0 {
						f.resolveStored(h.ID(), "stored")
					} else {
						f.resolveInline(h.ID(), "inline")
					}
				}
			},
			"retain": func(*rapid.T) {
				if len(users) > 0 {
					users = append(users, users[pick()].Retain())
				}
			},
			"bind": func(*rapid.T) {
				if len(users) > 0 {
					users = append(users, f.c.Bind(users[pick()].ID()))
				}
			},
			"release": func(*rapid.T) {
				if len(users) > 0 {
					i := pick()
					users[i].Release()
					users[i] = users[len(users)-1]
					users = users[:len(users)-1]
				}
			},
			"rebind": func(*rapid.T) { // the last user goes, and a new one comes at once
				if len(users) > 0 {
					i := pick()
					id := users[i].ID()
					users[i].Release()
					users[i] = f.c.Bind(id)
				}
			},
			"get": func(rt *rapid.T) {
				if len(users) > 0 {
					d, err := f.c.Get1(t.Context(), users[pick()])
					if err != nil {
						rt.Fatal(err)
					}
					reads = append(reads, d)
				}
			},
			"close a view": func(rt *rapid.T) {
				if len(reads) > 0 {
					i := rapid.IntRange(0, len(reads)-1).Draw(rt, "view")
					reads[i].Release()
					reads = append(reads[:i], reads[i+1:]...)
				}
			},
			"flush": func(*rapid.T) { f.c.Flush() },
			"": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "compare") == 0 {
					compare(rt, f)
				}
			},
		})
		for _, h := range users {
			h.Release()
		}
		for _, d := range reads {
			d.Release()
		}
		compare(rt, f)
		if f.c.Handles() != 0 || f.c.table.cacheUsed.Load() != 0 {
			rt.Fatalf("%d handles and %d cached bytes are left", f.c.Handles(), f.c.table.cacheUsed.Load())
		}
		if err := f.c.Close(t.Context()); err != nil {
			rt.Fatal(err)
		}
	})
}

func compare(rt *rapid.T, f *fakeNode) {
	f.c.Flush()
	if _, err := f.c.Request(f.t.Context(), "sync", nil); err != nil { // all before it was handled
		rt.Fatal(err)
	}
	f.c.Flush()
	f.mu.Lock()
	n := len(f.log)
	f.mu.Unlock()
	f.c.Dispatch(&wire.Resync{Component: wire.ComponentOwner})
	f.c.Dispatch(&wire.Resync{Component: wire.ComponentStore})
	f.until("holdings", func() bool { return countAfter(f.log, n, wire.KindHoldings) == 2 })
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.log[n:] {
		h, ok := m.(*wire.Holdings)
		if !ok {
			continue
		}
		if h.Component == wire.ComponentOwner {
			if len(h.Handles) != len(f.held) {
				rt.Fatalf("the client holds %d objects, the node counts %d", len(h.Handles), len(f.held))
			}
			for _, id := range h.Handles {
				if !f.held[id] {
					rt.Fatalf("the node does not know that %v is held", id)
				}
			}
			continue
		}
		if len(h.Pins) != len(f.pins) {
			rt.Fatalf("the client has %v pinned, the node counts %v", h.Pins, f.pins)
		}
		for _, p := range h.Pins {
			if f.pins[p.ID] != int(p.N) {
				rt.Fatalf("%v: %d pins, the node counts %d", p.ID, p.N, f.pins[p.ID])
			}
		}
	}
	if len(f.faults) > 0 {
		rt.Fatal(fmt.Sprint(f.faults))
	}
}

func countAfter(log []wire.Msg, n int, k wire.Kind) int {
	c := 0
	for _, m := range log[n:] {
		if m.Kind() == k {
			c++
		}
	}
	return c
}

// TestConcurrentUse lets many goroutines share few objects.
func TestConcurrentUse(t *testing.T) {
	f := newFake(t, Config{CacheBytes: 1 << 10})
	_, hs := f.submit(&wire.TaskOptions{NumReturns: 8})
	f.until("the submit", func() bool { return len(f.held) == 8 })
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				h := hs[(g+i)%8].Retain()
				d, err := f.c.Get1(t.Context(), h)
				if err != nil {
					t.Error(err)
					return
				}
				b := f.c.Bind(h.ID())
				d.Release()
				h.Release()
				b.Release()
				p, err := f.c.Put(t.Context(), wire.Value{Data: make([]byte, 100)})
				if err != nil {
					t.Error(err)
					return
				}
				p.Release()
			}
		})
	}
	for i, h := range hs {
		if i%2 == 0 {
			f.resolveStored(h.ID(), h.ID().String())
		} else {
			f.resolveInline(h.ID(), h.ID().String())
		}
	}
	wg.Wait()
	for _, h := range hs {
		h.Release()
	}
	f.until("nothing is left", func() bool { return len(f.held) == 0 && len(f.pins) == 0 })
}
