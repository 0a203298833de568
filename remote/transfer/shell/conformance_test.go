package shell

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore/spill"
	"mobula/remote/transfer"
)

func TestObjectsArrive(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		all := newNodes(t, net, 2)
		for i, size := range []int{0, 1, mib - 1, mib, mib + 1, 20*mib + 4711} {
			want, dst := pattern(i, size), make([]byte, size)
			all[0].put(object(i), want)
			if err := testkit.Receive(t, "an answer", all[1].get(object(i), dst, 1)); err != nil || !bytes.Equal(dst, want) {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	})
}

func TestANodeThatDoesNotHaveIt(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		all := newNodes(t, net, 3)
		dst := make([]byte, mib)
		err := testkit.Receive(t, "an answer", all[2].get(object(1), dst, 1, 2))
		if !errors.Is(err, transfer.ErrNoHolder) || !errors.Is(err, spill.ErrMissing) {
			t.Error(err)
		}
		all[1].put(object(1), pattern(1, mib))
		if err := testkit.Receive(t, "an answer", all[2].get(object(1), dst, 1, 2)); err != nil || !bytes.Equal(dst, pattern(1, mib)) {
			t.Error(err)
		}
	})
}

// Many objects at once, both ways.
func TestManyObjectsAtOnce(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		all := newNodes(t, net, 3)
		const n, size = 100, 300 << 10
		type fetch struct {
			dst  []byte
			n    int
			done <-chan error
		}
		var fetches []fetch
		for i := range 3 * n {
			holder, reader := all[i%3], all[(i+1)%3]
			holder.put(object(i), pattern(i, size))
			dst := make([]byte, size)
			fetches = append(fetches, fetch{dst, i, reader.get(object(i), dst, holder.home)})
		}
		for _, f := range fetches {
			if err := testkit.Receive(t, "an answer", f.done); err != nil || !bytes.Equal(f.dst, pattern(f.n, size)) {
				t.Fatalf("object %d: %v", f.n, err)
			}
		}
	})
}

// What breaks in the middle goes on where it was.
func TestACutTransfer(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		const size = 64 * mib
		all := newNodes(t, net, 2)
		want, dst := pattern(1, size), make([]byte, size)
		all[0].put(object(1), want)
		net.when(1, size/2, net.cut)
		if err := testkit.Receive(t, "an answer", all[1].get(object(1), dst, 1)); err != nil || !bytes.Equal(dst, want) {
			t.Fatal(err)
		}
		if sent := net.sentBy(1); sent > size*11/10 {
			t.Errorf("%d bytes were sent of %d", sent, size)
		}
	})
}

// Nodes that ask for an object at the same time pass it on from one to the next.
func TestABroadcast(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		const size, n = 32 * mib, 6
		all := newNodes(t, net, n+1)
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
		var dst [n][]byte
		var done [n]<-chan error
		for i := range dst {
			dst[i] = make([]byte, size)
			done[i] = all[i+1].get(object(1), dst[i], 1)
		}
		for i := range dst {
			if err := testkit.Receive(t, "an answer", done[i]); err != nil || !bytes.Equal(dst[i], want) {
				t.Fatalf("node %d: %v", i+2, err)
			}
		}
		for home := ids.Home(1); home <= n+1; home++ {
			if sent := net.sentBy(home); sent > 2*size { // the machine may be too slow for a sender, who is then left
				t.Errorf("node %v has sent %d bytes", home, sent)
			}
		}
	})
}

// The core is lost on either side: what was under way begins anew.
func TestACoreThatPanics(t *testing.T) {
	networks(t, func(t *testing.T, net *network) {
		const size = 16 * mib
		all := newNodes(t, net, 2)
		want, dst := pattern(1, size), make([]byte, size)
		all[0].put(object(1), want)
		all[0].sys.Faults.Inject(actors.Fault{Kind: "transfer", MessageType: "transfer.ChunkWritten", Nth: 3, Action: actors.PanicMidStep})
		all[1].sys.Faults.Inject(actors.Fault{Kind: "transfer", MessageType: "transfer.ChunkRead", Nth: 8, Action: actors.PanicMidStep})
		if err := testkit.Receive(t, "an answer", all[1].get(object(1), dst, 1)); err != nil || !bytes.Equal(dst, want) {
			t.Fatal(err)
		}
		for _, n := range all {
			if k := n.sys.Restarts()["transfer"]; k != 1 {
				t.Errorf("node %v: %d restarts", n.home, k)
			}
		}
		all[1].sys.Faults.Inject(actors.Fault{Kind: "transfer", MessageType: "transfer.Fetch", Times: 2, Action: actors.PanicMidStep})
		if err := testkit.Receive(t, "an answer", all[1].get(object(2), dst, 1)); !errors.Is(err, errs.ErrPanic) {
			t.Errorf("a fetch that no core survives: %v", err)
		}
	})
}

// A stop ends what is under way, on both sides.
func TestAStop(t *testing.T) {
	for _, which := range []int{0, 1} {
		t.Run(fmt.Sprint("node ", which+1), func(t *testing.T) {
			networks(t, func(t *testing.T, net *network) {
				const size = 64 * mib
				all := newNodes(t, net, 2)
				all[0].put(object(1), make([]byte, size))
				half := make(chan struct{})
				net.when(1, size/2, func() { close(half) })
				done := all[1].get(object(1), make([]byte, size), 1)
				<-half
				ctx := testkit.Within(t)
				if err := all[which].Stop(ctx); err != nil {
					t.Fatal(err)
				}
				err := testkit.Receive(t, "an answer", done)
				if want := map[int]error{0: transfer.ErrNoHolder, 1: errs.ErrShutdown}[which]; err != nil && !errors.Is(err, want) {
					t.Errorf("%v, want %v", err, want)
				}
				if err := testkit.Receive(t, "an answer", all[which].get(object(1), nil, 1)); !errors.Is(err, errs.ErrShutdown) {
					t.Errorf("after the stop: %v", err)
				}
			})
		})
	}
}
