package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/lend"
	"mobula/remote"
)

// Config is what a Hub is told. All but Lender, Brief, Core, MaxMessage, Logger and Policy must be set.
type Config struct {
	Self      remote.Life
	Cluster   string    // its name: nodes of another are refused
	Versions  Versions  // of what payloads say: nodes that have none in common with this one are refused
	Transport Transport // the hub's from Open on, which closes it

	// Address gives where a node is now. It is asked before each dial, on a goroutine of its own.
	Address func(ctx context.Context, home ids.Home) (string, error)
	// Verify tells whether the other end of a connection may be the node that it says: its certificate must name the home.
	Verify func(state tls.ConnectionState, home ids.Home) error
	// Deliver is called with each message, in order and once for each node. It may block: then nothing more is read from that node. It must not call
	// Send, since two nodes that wait for each other's room would wait for ever. The payload is its own until it returns.
	Deliver func(from remote.Life, payload []byte)
	// Notice is called with what happens to a node, in order with its messages. It may block like Deliver.
	Notice func(home ids.Home, n remote.Notice)

	// Lender has goroutines of this process that wait for answers; nil: none does. One of them may read a connection in place of its goroutine, and
	// call Deliver with messages that are Brief: handling them is short, and runs nothing that may need what such a goroutine holds.
	Lender *lend.Lender
	Brief  func(payload []byte) bool

	Core       remote.Config // of all peers, but for Self and Peer; the zero value: remote.DefaultConfig
	MaxMessage int           // bytes of a message at most; 0: 16 MiB
	Logger     *slog.Logger  // nil: silent
	Policy     actors.Policy // of restarts of peers
}

func (c *Config) check() error {
	switch {
	case c.Self.Epoch == 0 || c.Transport == nil || c.Address == nil || c.Verify == nil || c.Deliver == nil || c.Notice == nil || c.Versions.Min == 0:
		return errs.New(errs.CodeInvalid, "remote: a hub needs a life, versions, a transport, addresses, a check of certificates, and handlers")
	case len(c.Cluster) > maxCluster:
		return errs.New(errs.CodeInvalid, "remote: a cluster's name of %d bytes, at most %d", len(c.Cluster), maxCluster)
	}
	if c.Core.Limit == 0 {
		c.Core = remote.DefaultConfig(c.Self, 0)
	}
	if c.Core.Random == nil {
		c.Core.Random = rand.Int64N
	}
	if c.Lender == nil {
		c.Lender, c.Brief = new(lend.Lender), func([]byte) bool { return false }
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = 16 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Hub is what a node has with the other nodes of its cluster: messages to and from each.
type Hub struct {
	cfg   Config
	log   *slog.Logger
	sup   actors.Sup
	ctx   context.Context // ends when the hub closes
	end   context.CancelFunc
	links atomic.Uint64 // numbers that were given out

	mu    sync.RWMutex
	peers map[ids.Home]*peer // guarded by mu

	live struct {
		sync.Mutex
		closed bool               // guarded by it
		links  map[*link]struct{} // guarded by it: those that have not ended
		group  sync.WaitGroup     // of the hub's goroutines; none begins after closed
	}
}

// Open starts a hub: it accepts connections from now on. Its components stop with parent, but only Close ends its connections.
func Open(parent actors.Parent, cfg Config) (*Hub, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	sup, err := actors.Supervisor(parent, "remote", "remote", cfg.Policy)
	if err != nil {
		return nil, err
	}
	h := &Hub{cfg: cfg, log: cfg.Logger, sup: sup, peers: make(map[ids.Home]*peer)}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.live.links = make(map[*link]struct{})
	h.start(h.accept)
	h.start(h.tick)
	return h, nil
}

// Send has a message delivered to a node: in order with the other messages of this goroutine, and once, unless a notice says that it was dropped. An epoch of 0
// is whichever life of it there is; a message for a life that has ended is dropped, and so a notice says. It
// waits for room while the node is asked for more than it takes. Unless there is an error the payload is the hub's: nobody may
// change it any more.
//
// Errors: errs.ErrInvalid for a message that is empty or too large, errs.ErrShutdown once the hub is closed or this node's life is over, and the
// context's cause, with the failure of the last connection if there was one.
func (h *Hub) Send(ctx context.Context, to remote.Life, payload []byte) error {
	p, err := h.to(to.Home, payload)
	if err == nil {
		err = p.gate.enter(ctx, len(payload))
	}
	if err != nil {
		return err
	}
	return p.send(payload, to.Epoch)
}

// TrySend is Send that never waits. It goes on where Send begins to wait, up to Config.Core.Limit, and is then refused with errs.ErrBacklog.
func (h *Hub) TrySend(to remote.Life, payload []byte) error {
	p, err := h.to(to.Home, payload)
	if err == nil {
		err = p.gate.try(len(payload))
	}
	if err != nil {
		return err
	}
	return p.send(payload, to.Epoch)
}

// Agreed is the version that a node and this one both speak, as the last hello of that one has it; 0: there was none.
func (h *Hub) Agreed(home ids.Home) uint32 {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if p := h.peers[home]; p != nil {
		return p.agreed.Load()
	}
	return 0
}

// Fence says that the control plane has declared a node's lives up to an epoch dead. It does not wait.
func (h *Hub) Fence(home ids.Home, epoch uint64) error {
	p, err := h.peer(home)
	if err == nil {
		p.ref.Deliver(&coreEvent{ev: remote.Fence{Epoch: epoch}})
	}
	return err
}

// to gives the peer that a message is for.
func (h *Hub) to(home ids.Home, payload []byte) (*peer, error) {
	if n := len(payload); n == 0 || n > h.cfg.MaxMessage {
		return nil, errs.New(errs.CodeInvalid, "a message of %d bytes to node %v: 1 to %d may be sent", n, home, h.cfg.MaxMessage)
	}
	return h.peer(home)
}

// peer gives the actor of a node, and starts it if there is none.
func (h *Hub) peer(home ids.Home) (*peer, error) {
	h.mu.RLock()
	p := h.peers[home]
	h.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	if home == h.cfg.Self.Home {
		return nil, errs.New(errs.CodeInvalid, "node %v sends messages to itself", home)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.peers[home]; p != nil {
		return p, nil
	}
	p, err := h.spawnPeer(home)
	if err != nil {
		return nil, err
	}
	h.peers[home] = p
	return p, nil
}

// tick looks at each link now and then, for one whose messages are handled, or come, for long.
func (h *Hub) tick() {
	t := time.NewTicker(max(h.cfg.Core.Silence/4, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-h.ctx.Done():
			return
		}
		h.live.Lock()
		for l := range h.live.links {
			l.busy()
		}
		h.live.Unlock()
	}
}

// start runs f on a goroutine that Close waits for. False: the hub is closed.
func (h *Hub) start(f func()) bool {
	h.live.Lock()
	defer h.live.Unlock()
	if h.live.closed {
		return false
	}
	h.live.group.Go(f)
	return true
}

// keep takes a link in, and starts its writer. False: the hub is closed.
func (h *Hub) keep(l *link) bool {
	h.live.Lock()
	defer h.live.Unlock()
	if h.live.closed {
		return false
	}
	h.live.links[l] = struct{}{}
	h.live.group.Go(l.write)
	return true
}

// forget lets go of a link that has ended.
func (h *Hub) forget(l *link) {
	h.live.Lock()
	defer h.live.Unlock()
	delete(h.live.links, l)
}

// verify checks that the other end of a connection is the node that it says.
func (h *Hub) verify(conn Conn, home ids.Home) error {
	if err := h.cfg.Verify(conn.ConnectionState(), home); err != nil {
		return fmt.Errorf("%w: the other end (%v) is not shown to be node %v: %w", remote.ErrOtherNode, conn.RemoteAddr(), home, err)
	}
	return nil
}

// hello is what this node says first.
func (h *Hub) hello(core remote.Hello) []byte {
	g := hello{versions: h.cfg.Versions, cluster: h.cfg.Cluster, Hello: core}
	return g.encode()
}

// Close ends all connections and stops the peers. What was not acknowledged is dropped. It waits for the handlers, until the context ends.
func (h *Hub) Close(ctx context.Context) error {
	h.end()
	err := errors.Join(h.cfg.Transport.Close(), h.sup.Stop(ctx))
	h.live.Lock()
	h.live.closed = true
	left := make([]*link, 0, len(h.live.links))
	for l := range h.live.links {
		left = append(left, l)
	}
	h.live.Unlock()
	for _, l := range left {
		l.fail(errStopped)
	}
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		h.live.group.Wait()
	}()
	select {
	case <-idle:
		return err
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("remote: handlers do not return: %w", context.Cause(ctx)))
	}
}
