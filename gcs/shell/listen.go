package shell

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"mobula/internal/trust"
	"mobula/internal/trust/credentials"
)

// ListenConfig has a server listen for the nodes of its cluster and for the cluster's other servers.
type ListenConfig struct {
	// Live is who this node is, nil as long as it is not known: until then every connection from elsewhere is refused. What the other side may do
	// follows from its certificate.
	Live     func() *credentials.Live
	Cluster  string   // the cluster's id
	Identity string   // of the node's directory: its name among the servers, for ever
	Clients  string   // address for nodes, HOST:PORT
	Routes   string   // address for other servers
	Others   []string // addresses for servers of the others that are known; none: the set begins with this one
	// AdvertiseClients and AdvertiseRoutes are what others are told to dial, where that is not Clients and Routes.
	AdvertiseClients, AdvertiseRoutes string
}

// A connection on which the other side does not answer is given up after pingsLost answers that do not come: it is stopped, or the network is cut. Between a node
// and a server that is not how it is noticed: a node leaves a server whose feed is silent, and nobody waits for the server to see that a node is gone.
const (
	pingEvery     = time.Second // between servers
	pingNodeEvery = 30 * time.Second
	pingsLost     = 3
)

// greetingTime bounds the handshake and the first words of a connection.
const greetingTime = 5 * time.Second

// options are those of a server of a cluster, besides what every server has.
func (c *ListenConfig) options(opts *server.Options, d *door) error {
	var errs [2]error
	opts.Host, opts.Port, errs[0] = split(c.Clients)
	opts.Cluster.Host, opts.Cluster.Port, errs[1] = split(c.Routes)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	opts.ServerName = c.Identity
	opts.DontListen = false
	opts.ClientAdvertise = c.AdvertiseClients
	opts.TLSConfig = d.tls(trust.ReadTables)
	opts.TLSHandshakeFirst = true // else it tells strangers its version and the addresses of all servers
	opts.TLSTimeout = greetingTime.Seconds()
	opts.CustomClientAuthentication = d
	opts.PingInterval, opts.MaxPingsOut = pingNodeEvery, pingsLost
	opts.Cluster.PingInterval, opts.Cluster.MaxPingsOut = pingEvery, pingsLost
	opts.Cluster.Name = c.Cluster
	opts.Cluster.Advertise = c.AdvertiseRoutes
	opts.Cluster.TLSConfig = d.tls(trust.CarryTables)
	opts.Cluster.TLSTimeout = greetingTime.Seconds()
	opts.Cluster.AuthTimeout = greetingTime.Seconds()
	// A route to itself, which the server drops, is what it wants to see to run clustered when there is no other server yet.
	for _, other := range append([]string{c.routesAddress()}, c.Others...) {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", Host: other})
	}
	return nil
}

// routesAddress is where other servers reach this one.
func (c *ListenConfig) routesAddress() string {
	if c.AdvertiseRoutes != "" {
		return c.AdvertiseRoutes
	}
	return c.Routes
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(text); err != nil || port == 0 {
		return "", 0, fmt.Errorf("%q has no port to listen on", address)
	}
	return host, port, nil
}
