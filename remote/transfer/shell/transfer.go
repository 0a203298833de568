package shell

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/objectstore"
	"mobula/objectstore/segment"
	"mobula/remote/transfer"
)

// DialTimeout bounds a dial, with the handshake.
const DialTimeout = 3 * time.Second

// Options are what a Transfer is made of. All but Logger and Policy must be set.
type Options struct {
	Config    transfer.Config
	Transport Transport
	// Store hands an event to the object store. It must not block.
	Store  func(objectstore.Event)
	Logger *slog.Logger  // nil: silent
	Policy actors.Policy // of restarts
}

// Transfer moves objects between this node and others. Its methods are safe for concurrent use.
type Transfer struct {
	o      Options
	ref    *actors.Ref[transfer.Event]
	log    *slog.Logger
	memory memory
	conns  conns
	ctx    context.Context // ends with the component
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines

	// Used on the actor's goroutine only.
	disarm func() // the timer
	life   int    // of the core, from 0
	inHand transfer.FetchID
	first  int // events of build that the core has not stepped
}

// Open starts a Transfer.
func Open(parent actors.Parent, o Options) (*Transfer, error) {
	t := &Transfer{o: o, log: o.Logger}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	var err error
	t.ref, err = actors.Spawn(parent, actors.Spec[transfer.Event, transfer.Effect]{
		Kind: "transfer", Name: "transfer", New: t.build, Do: t.do, Stop: t.stop, Policy: o.Policy, OnPoison: t.poisoned,
	})
	if err != nil {
		t.cancel()
		return nil, err
	}
	t.work.Go(t.accept)
	return t, nil
}

// Stop stops it. Fetches under way fail.
func (t *Transfer) Stop(ctx context.Context) error { return t.ref.Stop(ctx) }

// Fetch reads an object that other nodes have, the best first, into dst. See the Peers of the object store.
func (t *Transfer) Fetch(from []ids.Home, id ids.ObjectID, attempt uint32, dst *segment.Room, done func(error)) {
	f := t.memory.fetch(transfer.Fetch{Object: transfer.Object{ID: id, Attempt: attempt}, Size: int64(len(dst.Bytes)), From: from}, dst, done)
	if f == nil {
		done(errStopped())
		return
	}
	t.ref.Deliver(f.event)
}

// Serve takes the store's answer to an Export. See the Peers of the object store.
func (t *Transfer) Serve(to ids.Home, token uint64, data []byte, err error, done func()) {
	if !t.memory.serve(serveKey{to, token}, served{data, done}) {
		done()
		return
	}
	t.ref.Deliver(transfer.Served{To: to, Token: token, Size: int64(len(data)), Failed: err != nil, Missing: errors.Is(err, errs.ErrObjectLost)})
}

// Sources names further nodes that may have an object which is being fetched.
func (t *Transfer) Sources(id ids.ObjectID, attempt uint32, on []ids.Home) {
	t.ref.Deliver(transfer.Sources{Object: transfer.Object{ID: id, Attempt: attempt}, On: on})
}

// Gone says that a node is dead.
func (t *Transfer) Gone(node ids.Home) { t.ref.Deliver(transfer.Gone{Node: node}) }

func errStopped() error { return errs.New(errs.CodeShutdown, "the transfer between nodes has stopped") }

// stop ends everything.
func (t *Transfer) stop() {
	t.cancel()
	if err := t.o.Transport.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		t.log.Warn("transfer between nodes: close the transport", "err", err)
	}
	t.conns.shut(errStopped())
	t.work.Wait()
	fetches, all := t.memory.close()
	for _, f := range fetches {
		f.done(errStopped())
	}
	for _, s := range all {
		s.done()
	}
}

// accept takes the connections of others.
func (t *Transfer) accept() {
	for {
		c, from, err := t.o.Transport.Accept()
		if err != nil {
			if t.ctx.Err() == nil {
				t.log.Error("transfer between nodes: no connections are accepted any more", "err", err)
			}
			return
		}
		t.open(c, from, false)
	}
}

// dial connects to a node.
func (t *Transfer) dial(to ids.Home) {
	ctx, cancel := context.WithTimeout(t.ctx, DialTimeout)
	defer cancel()
	c, err := t.o.Transport.Dial(ctx, to)
	if err != nil {
		t.ref.Deliver(transfer.DialFailed{Peer: to, Err: err})
		return
	}
	t.open(c, to, true)
}

// open puts a connection to use.
func (t *Transfer) open(raw net.Conn, peer ids.Home, dialed bool) {
	c := t.conns.add(raw)
	if c == nil {
		_ = raw.Close() // it has stopped
		return
	}
	t.ref.Deliver(transfer.Connected{Conn: c.id, Peer: peer, Dialed: dialed})
	t.work.Go(func() { t.run(c) })
}
