package shell

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"

	"mobula/internal/errs"
	"mobula/remote/membership"
)

// ErrNoKey is wrapped when a node would gossip off loopback without a key.
var ErrNoKey = errors.New("gossip off loopback needs a key")

// maxCluster is how long the name of a cluster may be: each packet has it, and shall have room for more.
const maxCluster = 64

// Config configures the membership of a node.
type Config struct {
	Core    membership.Config // with the node; its gossip address is filled in
	Cluster string            // the name of the cluster: nodes of another are not heard

	Bind      string     // host and port that the gossip listens on, UDP and TCP; port 0: any
	Advertise string     // host and port for the others; empty: those of Bind
	Keys      [][]byte   // each of 16, 24 or 32 bytes, shared by all nodes: the first one encrypts; may be left out on loopback
	Dialer    net.Dialer // what it connects to others with
	Timing    Timing

	// Transport is what to gossip over instead of the network, in tests. Then no key is needed.
	Transport memberlist.NodeAwareTransport

	Follow func(membership.Notice)   // is told what changes; nil: nobody
	Accuse func(membership.Accuse)   // asks the control plane about a life; nil: nobody
	Facts  func() []membership.Event // what else is known, for a core that begins; nil: nothing
	Logger *slog.Logger              // nil: silent
}

// Timing is how fast the gossip is. It is memberlist's for one data centre, on one machine too: a node that is short of processor is not to be taken for dead.
type Timing struct {
	Probe, ProbeTimeout, Gossip, PushPull time.Duration
}

// LAN is memberlist's timing for one data centre.
func LAN() Timing {
	c := memberlist.DefaultLANConfig()
	return Timing{Probe: c.ProbeInterval, ProbeTimeout: c.ProbeTimeout, Gossip: c.GossipInterval, PushPull: c.PushPullInterval}
}

// check validates the configuration and fills in defaults.
func (c *Config) check() error {
	if c.Timing == (Timing{}) {
		c.Timing = LAN()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Follow == nil {
		c.Follow = func(membership.Notice) {}
	}
	if c.Accuse == nil {
		c.Accuse = func(membership.Accuse) {}
	}
	if c.Facts == nil {
		c.Facts = func() []membership.Event { return nil }
	}
	if err := c.Core.Validate(); err != nil {
		return errs.New(errs.CodeInvalid, "membership: %v", err)
	}
	if c.Cluster == "" || len(c.Cluster) > maxCluster {
		return errs.New(errs.CodeInvalid, "membership: the cluster's name has %d bytes; it must have 1 to %d", len(c.Cluster), maxCluster)
	}
	if len(c.Keys) > 0 {
		if err := checkKeys(c.Keys); err != nil {
			return errs.New(errs.CodeInvalid, "membership: %v", err)
		}
	}
	if c.Transport != nil {
		return nil
	}
	bind, _, err := split(c.Bind)
	if err != nil {
		return err
	}
	away := !bind.IsLoopback()
	if c.Advertise != "" {
		ip, _, err := split(c.Advertise)
		if err != nil {
			return err
		}
		away = away || !ip.IsLoopback()
	}
	switch {
	case away && len(c.Keys) == 0:
		return fmt.Errorf("membership: %w: %s", ErrNoKey, c.Bind)
	case bind.IsUnspecified() && c.Advertise == "":
		return errs.New(errs.CodeInvalid, "membership: gossip on %s, all addresses of the machine: say by which one the others reach it", c.Bind)
	}
	return nil
}

// split reads an address whose host is an IP address.
func split(address string) (net.IP, int, error) {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	n, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || ip == nil || errPort != nil {
		return nil, 0, errs.New(errs.CodeInvalid, "membership: address %q; it must be an IP address and a port", address)
	}
	return ip, int(n), nil
}
