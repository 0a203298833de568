package node

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"mobula/gcs"
	"mobula/internal/errs"
	"mobula/internal/trust"
)

// DefaultPort is where a node listens for other nodes, unless told.
const DefaultPort = 7710

// defaultCluster is the name of a cluster that is founded without one.
const defaultCluster = "mobula"

// Wires is how a node gets into its cluster, and where other nodes reach it.
type Wires struct {
	Cluster string // name of the cluster: which the node founds, or is to join; empty: "mobula", or any

	Listen    string // HOST or HOST:PORT for messages, objects and joins; empty: as the node was told before, or else as the first address of Join sees this machine
	Advertise string // host by which others reach the node; default that of Listen
	// Ports of the gossip (TCP and UDP), of the control plane's clients and of its servers among themselves. 0: Listen's plus 1, 2 and 3.
	GossipPort, GCSPort, RoutesPort int

	Join  []string   // addresses of nodes of the cluster; none: the directory knows some, or the node founds a cluster
	Token string     // to join with
	Role  trust.Role // wished; empty: as before, else Data for a node that joins, and ControlPlane for one that founds

	Dialer net.Dialer // what it connects to other nodes with

	Wall func() time.Time // the machine's wall clock, for a test in which it is set; nil: time.Now

	towards string // the first address of Join at an earlier start
}

// addresses are where a node is, for itself and for others.
type addresses struct {
	listen, gossip, gcs, routes string // that it listens on
	host                        string // by which others reach it
	port                        [4]int // 0: it has none, since others carry the tables
}

// shown gives an address for others.
func (a addresses) shown(i int) string { return net.JoinHostPort(a.host, strconv.Itoa(a.port[i])) }

// The places of addresses.port.
const (
	portNodes = iota
	portGossip
	portGCS
	portRoutes
)

// all are the addresses for others, as the node's row has them.
func (a addresses) all() map[string]string {
	out := make(map[string]string)
	for i, name := range [...]string{portNodes: gcs.AtNodes, portGossip: gcs.AtGossip, portGCS: gcs.AtTables, portRoutes: gcs.AtRoutes} {
		if a.port[i] != 0 {
			out[name] = a.shown(i)
		}
	}
	return out
}

// addresses says where the node is to listen.
func (w *Wires) addresses() (a addresses, err error) {
	host, port, err := hostPort(w.Listen, DefaultPort)
	if err != nil {
		return a, err
	}
	if to := w.reaches(); host == "" && w.Listen == "" && to != "" {
		if host, err = hereFor(to); err != nil {
			return a, err
		}
	}
	a.port = [4]int{port, w.GossipPort, w.GCSPort, w.RoutesPort}
	if w.anyPort() {
		a.listen = net.JoinHostPort(host, "0")
		a.host, err = w.host(host)
		return a, err
	}
	for i := range a.port {
		def(&a.port[i], port+i)
		if a.port[i] < 1 || a.port[i] > 65535 {
			return a, errs.New(errs.CodeInvalid, "port %d is none: ports are 1 to 65535; the gossip and the control plane listen on the ports after the node's own unless they are set", a.port[i])
		}
	}
	for i := range a.port {
		for j := range i {
			if a.port[i] == a.port[j] {
				return a, errs.New(errs.CodeInvalid, "port %d is given twice: nodes, gossip, control plane and its routes need one each", a.port[i])
			}
		}
	}
	bind := func(i int) string { return net.JoinHostPort(host, strconv.Itoa(a.port[i])) }
	a.listen, a.gossip, a.gcs, a.routes = bind(portNodes), bind(portGossip), bind(portGCS), bind(portRoutes)
	a.host, err = w.host(host)
	return a, err
}

// anyPort tells whether the node takes the port that it gets: a machine may run many programs that each have a node, which has no other port.
func (w *Wires) anyPort() bool {
	_, p, err := net.SplitHostPort(w.Listen)
	return w.Role == trust.Driver && (err != nil || p == "")
}

// host is by which others reach the node.
func (w *Wires) host(bound string) (string, error) {
	if w.Advertise != "" {
		return w.Advertise, nil
	}
	if ip := net.ParseIP(bound); bound != "" && (ip == nil || !ip.IsUnspecified()) {
		return bound, nil
	}
	if to := w.reaches(); to != "" {
		return hereFor(to)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", errs.New(errs.CodeInvalid, "the node listens on all addresses of this machine, and none of them can be reached from others: say --advertise HOST")
}

// hereFor is the address of this machine from which another one is reached. Nothing is sent.
func hereFor(address string) (string, error) {
	host, _, err := hostPort(address, DefaultPort)
	if err != nil {
		return "", err
	}
	c, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(DefaultPort)))
	if err != nil {
		return "", errs.New(errs.CodeInvalid, "there is no way from here to %s: %v", address, err)
	}
	defer func() { _ = c.Close() }() // it was never used
	here, _, err := net.SplitHostPort(c.LocalAddr().String())
	return here, err
}

// withPorts adds the default port to addresses that have none. What is no address is found to be none when it is dialed.
func withPorts(all []string) (out []string) {
	for _, a := range all {
		if host, p, err := hostPort(a, DefaultPort); err == nil {
			a = net.JoinHostPort(host, strconv.Itoa(p))
		}
		out = append(out, a)
	}
	return out
}

// hostPort reads HOST, HOST:PORT or :PORT.
func hostPort(s string, port int) (string, int, error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil { // no port
		if host, _, err = net.SplitHostPort(s + ":0"); err != nil {
			return "", 0, errs.New(errs.CodeInvalid, "%q is no address: want HOST, HOST:PORT or [IPV6]:PORT", s)
		}
		return host, port, nil
	}
	n, err := strconv.Atoi(p)
	if err != nil || n < 1 || n > 65535 {
		return "", 0, errs.New(errs.CodeInvalid, "%q has no port from 1 to 65535", s)
	}
	return host, n, nil
}
