package memnet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Why a dial fails.
var (
	ErrUnreachable = errors.New("memnet: nobody answers")
	ErrRefused     = errors.New("memnet: nobody listens")
)

// Network connects Transports.
type Network struct {
	mu      sync.Mutex
	random  *rand.Rand            // guarded by mu
	shape   Shape                 // guarded by mu
	ends    map[string]*Transport // guarded by mu: by address
	cuts    map[[2]string]bool    // guarded by mu: from, to
	still   map[string]bool       // guarded by mu
	waiting map[string][]func()   // guarded by mu: what happens at an end when it no longer stands still
}

// Shape is how good the network is.
type Shape struct {
	Latency, Jitter time.Duration // of each packet: Latency, and up to Jitter more
	Loss            float64       // share of packets
}

// New makes a network without latency or loss.
func New(seed uint64) *Network {
	return &Network{
		random: rand.New(rand.NewPCG(seed, seed)), ends: make(map[string]*Transport), cuts: make(map[[2]string]bool),
		still: make(map[string]bool), waiting: make(map[string][]func()),
	}
}

// Shape sets how good it is from now on.
func (n *Network) Shape(s Shape) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shape = s
}

// Cut has packets and dials between two ends vanish, either way, or ends that.
func (n *Network) Cut(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]string{a, b}], n.cuts[[2]string{b, a}] = cut, cut
}

// Partition cuts all ends on one side from all on the other, or ends that.
func (n *Network) Partition(a, b []string, cut bool) {
	for _, x := range a {
		for _, y := range b {
			n.Cut(x, y, cut)
		}
	}
}

// Stop has an end stand still, or go on: what is sent to it waits, and so does what it sends. So a process looks from outside that is stopped.
func (n *Network) Stop(address string, still bool) {
	n.mu.Lock()
	n.still[address] = still
	var then []func()
	if !still {
		then = n.waiting[address]
		delete(n.waiting, address)
	}
	n.mu.Unlock()
	for _, f := range then {
		f()
	}
}

// Listen opens an end at an address: an IP address and a port.
func (n *Network) Listen(address string) (*Transport, error) {
	host, port, err := net.SplitHostPort(address)
	number, errPort := strconv.Atoi(port)
	ip := net.ParseIP(host)
	if err != nil || errPort != nil || ip == nil {
		return nil, fmt.Errorf("memnet: %q is no IP address with a port", address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[address] != nil {
		return nil, fmt.Errorf("memnet: %s is taken", address)
	}
	t := newTransport(n, address, ip, number)
	n.ends[address] = t
	return t, nil
}

// way is how something gets from one end to another: after how long, or not at all.
func (n *Network) way(from, to string, packet bool) (delay time.Duration, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cuts[[2]string{from, to}] || packet && n.random.Float64() < n.shape.Loss {
		return 0, true
	}
	delay = n.shape.Latency
	if n.shape.Jitter > 0 {
		delay += time.Duration(n.random.Int64N(int64(n.shape.Jitter)))
	}
	return delay, false
}

// maxWaiting is how many packets wait for an end that stands still.
const maxWaiting = 1024

// unless runs f once neither end stands still.
func (n *Network) unless(from, to string, f func()) {
	n.mu.Lock()
	for _, end := range []string{from, to} {
		if n.still[end] {
			if len(n.waiting[end]) < maxWaiting {
				n.waiting[end] = append(n.waiting[end], func() { n.unless(from, to, f) })
			}
			n.mu.Unlock()
			return
		}
	}
	n.mu.Unlock()
	f()
}

func (n *Network) end(address string) *Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ends[address]
}

func (n *Network) close(t *Transport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ends[t.address] == t {
		delete(n.ends, t.address)
	}
}
