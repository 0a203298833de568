package shell

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	storeshell "mobula/objectstore/shell"
	"mobula/remote/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ storeshell.Peers = (*Transfer)(nil)

const mib = 1 << 20

func object(n int) ids.ObjectID { return ids.RootTask(1, 1).Put(uint32(n)) }

// pattern is bytes that differ with the object and the place.
func pattern(n, size int) []byte {
	b := make([]byte, size)
	for i := 0; i < size; i += 4096 {
		copy(b[i:], binary.LittleEndian.AppendUint64(nil, uint64(n)<<40|uint64(i+1)))
	}
	return b
}

// node is a Transfer, and a store of a test.
type node struct {
	*Transfer
	home ids.Home
	sys  *actors.System
	work sync.WaitGroup
	hold chan struct{} // not nil: the store answers when it is closed

	mu   sync.Mutex
	has  map[ids.ObjectID][]byte
	pins map[serveKey]bool
}

// newNodes starts nodes of homes 1 to n. They are stopped when the test ends.
func newNodes(t testing.TB, net *network, n int, change ...func(*transfer.Config)) []*node {
	var all []*node
	for home := ids.Home(1); home <= ids.Home(n); home++ {
		all = append(all, newNode(t, home, net.node(t, home), change...))
	}
	return all
}

func newNode(t testing.TB, home ids.Home, tr Transport, change ...func(*transfer.Config)) *node {
	n := &node{home: home, sys: actors.NewSystem(actors.Config{}), has: map[ids.ObjectID][]byte{}, pins: map[serveKey]bool{}}
	cfg := transfer.DefaultConfig(home)
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if n.Transfer, err = Open(n.sys, Options{Config: cfg, Transport: tr, Store: n.store}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.close(t) })
	return n
}

func (n *node) close(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := n.sys.StopTree(ctx); err != nil {
		t.Errorf("node %v: %v", n.home, err)
	}
	n.work.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.pins) != 0 {
		t.Errorf("node %v: pinned at the end: %v", n.home, n.pins)
	}
}

func (n *node) put(id ids.ObjectID, b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.has[id] = b
}

// store answers what the Transfer asks of the store.
func (n *node) store(ev objectstore.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch ev := ev.(type) {
	case objectstore.Export:
		b, ok := n.has[ev.ID]
		var err error
		if !ok {
			err = errs.New(errs.CodeObjectLost, "object %v is not on this node", ev.ID)
		}
		k := serveKey{ev.To, ev.Token}
		n.pins[k] = true
		n.work.Go(func() {
			if n.hold != nil {
				<-n.hold
			}
			n.Serve(ev.To, ev.Token, b, err, func() {
				n.mu.Lock()
				defer n.mu.Unlock()
				delete(n.pins, k)
			})
		})
	case objectstore.ExportDone: // the answer, which comes all the same, ends the pin
	}
}

// get fetches an object, which this node has from then on; the answer comes on the channel.
func (n *node) get(id ids.ObjectID, dst []byte, from ...ids.Home) <-chan error {
	return n.getInto(id, segment.NewRoom(dst), from...)
}

// getInto is get for any room.
func (n *node) getInto(id ids.ObjectID, dst *segment.Room, from ...ids.Home) <-chan error {
	ch := make(chan error, 2)
	n.Fetch(from, id, 0, dst, func(err error) {
		if err == nil {
			n.put(id, dst.Bytes)
		}
		ch <- err
	})
	return ch
}
