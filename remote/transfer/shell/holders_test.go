package shell

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"mobula/actors"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/remote/transfer"
)

// quick notices soon that nothing is heard of a node.
func quick(c *transfer.Config) { c.Silence, c.Alive = 600*time.Millisecond, 100*time.Millisecond }

// losses are how a node is lost.
var losses = map[string]func(*testing.T, *network, ids.Home){
	"it dies":  func(_ *testing.T, net *network, home ids.Home) { net.kill(home) },
	"it stops": func(t *testing.T, net *network, home ids.Home) { net.stop(t, home) },
}

// What is left when a holder is lost comes from another one: from the chunk that is missing, and not from the beginning.
func TestATransferGoesOnWithAnotherHolder(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			networks(t, func(t *testing.T, net *network) {
				const size = 64 * mib
				all := newNodes(t, net, 3, quick)
				want, dst := pattern(1, size), make([]byte, size)
				all[0].put(object(1), want)
				all[1].put(object(1), want)
				net.when(1, size/2, func() { lose(t, net, 1) })
				if err := testkit.Receive(t, "an answer", all[2].get(object(1), dst, 1, 2)); err != nil || !bytes.Equal(dst, want) {
					t.Fatal(err)
				}
				if one, two := net.sentBy(1), net.sentBy(2); one+two > size*101/100+transfer.DefaultConfig(3).Window+transfer.ChunkSize || one > size*7/10 { // what was under way is sent again
					t.Errorf("the first has sent %d bytes, the second %d, of %d", one, two, size)
				}
			})
		})
	}
}

// A node in the middle of a chain is lost: those behind it get the rest from others, and who has all of it does not send it to each of them.
func TestABrokenChain(t *testing.T) {
	for name, lose := range losses {
		t.Run(name, func(t *testing.T) {
			networks(t, func(t *testing.T, net *network) {
				const size, n = 48 * mib, 5
				all := newNodes(t, net, n+1, quick)
				want := pattern(1, size)
				all[0].put(object(1), want)
				all[0].hold = make(chan struct{})
				pulls := 0
				all[0].sys.Faults.Follow(func(_, _, message string) (actors.Fault, bool) {
					if message == "transfer.Got" {
						if pulls++; pulls == n {
							close(all[0].hold)
						}
					}
					return actors.Fault{}, false
				})
				var once sync.Once
				chosen := make(chan ids.Home, 1)
				for home := ids.Home(2); home <= n+1; home++ {
					net.when(home, size/4, func() { // the first that has passed on a quarter of it
						once.Do(func() {
							chosen <- home
							lose(t, net, home)
						})
					})
				}
				var dst [n][]byte
				var done [n]<-chan error
				for i := range dst {
					dst[i] = make([]byte, size)
					done[i] = all[i+1].get(object(1), dst[i], 1)
				}
				lost := testkit.Receive(t, "a node that passes it on", chosen)
				for i := range dst {
					if home := ids.Home(i + 2); home == lost {
						continue
					}
					if err := testkit.Receive(t, "an answer", done[i]); err != nil || !bytes.Equal(dst[i], want) {
						t.Fatalf("node %d, after the loss of %v: %v", i+2, lost, err)
					}
				}
				if sent := net.sentBy(1); sent > 3*size { // the machine may be too slow for a sender, who is then left
					t.Errorf("after the loss of node %v the first has sent %d bytes of %d", lost, sent, size)
				}
			})
		})
	}
}
