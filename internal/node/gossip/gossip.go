package gossip

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"

	"mobula/actors"
	"mobula/internal/errs"
	"mobula/remote/membership"
)

// Config configures a node's membership.
type Config struct {
	Core            membership.Config // with the node
	Cluster         string            // its id
	Bind, Advertise string            // host and port of the gossip
	Keys            [][]byte          // that it is read with: the first one encrypts
	Dialer          net.Dialer        // what it connects to others with
	Follow          func(membership.Notice)
	Accuse          func(membership.Accuse)
	Facts           func() []membership.Event // what is known, for a core that begins
	Logger          *slog.Logger
}

// Gossip is a node's membership in its cluster.
type Gossip interface {
	// Tell passes on what the control plane and the connections say. It does not block.
	Tell(ev membership.Event) error
	// Join reaches the others at addresses, and gives how many have answered.
	Join(ctx context.Context, addresses []string) (int, error)
	// SetKeys has other keys take the place of those of the Config.
	SetKeys(keys [][]byte) error
	// Leave tells the others that this node ends in order.
	Leave(ctx context.Context) error
}

// Driver starts a membership that gossips.
type Driver func(parent actors.Parent, cfg Config) (Gossip, error)

var driver atomic.Pointer[Driver]

// Register sets the driver, which a program imports for that.
func Register(d Driver) { driver.Store(&d) }

// Start starts the node's membership: by the driver, or without gossip where the node only submits work.
func Start(parent actors.Parent, cfg Config) (Gossip, error) {
	if cfg.Core.Self.Role == membership.Driver {
		return startSilent(parent, cfg)
	}
	d := driver.Load()
	if d == nil {
		return nil, errs.New(errs.CodeInvalid, "a node that runs work of its cluster or carries its tables is a process of its own: start it with mobula start")
	}
	return (*d)(parent, cfg)
}
