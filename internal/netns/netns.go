package netns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// Most is how many hosts a network may have.
	Most = 64

	// Patience bounds one command.
	Patience = 20 * time.Second
)

// ErrUnable says that there can be no network here.
var ErrUnable = errors.New("netns: a network of namespaces needs root and the command ip")

// Net is a network. Its methods are safe for concurrent use.
type Net struct {
	Hosts []*Host

	name string // what the names of its namespaces begin with
}

// serial tells the networks of this process apart.
var serial atomic.Int64

// New makes a network of so many hosts: 10.77.0.1, 10.77.0.2, and so on.
func New(ctx context.Context, hosts int) (_ *Net, err error) {
	if hosts < 1 || hosts > Most {
		return nil, fmt.Errorf("netns: %d hosts, want 1 to %d", hosts, Most)
	}
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		return nil, ErrUnable
	}
	removeStale()
	me, err := startOf(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("netns: %w", err)
	}
	n := named(fmt.Sprintf("%s%d-%d-%d", prefix, os.Getpid(), me, serial.Add(1)), hosts)
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	return n, n.build(ctx)
}

// named is the network of that name, whether it exists or not.
func named(name string, hosts int) *Net {
	n := &Net{name: name}
	for i := range hosts {
		n.Hosts = append(n.Hosts, &Host{
			Addr: netip.AddrFrom4([4]byte{10, 77, 0, byte(i + 1)}), namespace: fmt.Sprintf("%s-h%d", name, i+1), port: fmt.Sprintf("p%d", i+1), hub: n.hub(),
		})
	}
	return n
}

// String names the network for Open.
func (n *Net) String() string { return fmt.Sprintf("%s/%d", n.name, len(n.Hosts)) }

// Open gives the network that another process has made, by its String.
func Open(text string) (*Net, error) {
	name, count, _ := strings.Cut(text, "/")
	hosts, err := strconv.Atoi(count)
	if _, ok := makerOf(name); !ok || err != nil || hosts < 1 || hosts > Most {
		return nil, fmt.Errorf("netns: %q names no network", text)
	}
	n := named(name, hosts)
	for _, h := range n.Hosts {
		if _, err := h.inode(); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// hub is the namespace of the bridge.
func (n *Net) hub() string { return n.name + "-hub" }

// build makes the namespaces and what is in them.
func (n *Net) build(ctx context.Context) error {
	names, cables := []string{"netns add " + n.hub()}, []string{"link add br0 type bridge", "link set br0 up"}
	for _, h := range n.Hosts {
		names = append(names, "netns add "+h.namespace)
		cables = append(cables,
			fmt.Sprintf("link add %s type veth peer name %s netns %s", h.port, cable, h.namespace),
			fmt.Sprintf("link set %s master br0 up", h.port))
	}
	if err := ip(ctx, "", names...); err != nil {
		return err
	}
	if err := ip(ctx, n.hub(), cables...); err != nil {
		return err
	}
	for _, h := range n.Hosts {
		if err := ip(ctx, h.namespace, "link set lo up", fmt.Sprintf("addr add %v/24 dev %s", h.Addr, cable), "link set "+cable+" up"); err != nil {
			return err
		}
	}
	return nil
}

// Close ends all processes in the network and removes it.
func (n *Net) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	var all []error
	for _, h := range n.Hosts {
		all = append(all, remove(ctx, h.namespace))
	}
	return errors.Join(append(all, remove(ctx, n.hub()))...)
}
