package model

import (
	"math"
	"time"
)

// Config is what is simulated.
type Config struct {
	Nodes   int // numbered from 0; at the beginning each knows all others
	Seed    uint64
	Latency time.Duration // of a packet, and up to as much again by chance
	Meta    int           // bytes that a node says of itself
	Rules   Rules
}

// Rules are memberlist's constants.
type Rules struct {
	Probe           time.Duration // between two probes of a node
	ProbeTimeout    time.Duration // until others are asked to probe, and until these say that they have no answer
	Indirect        int           // how many others
	Retransmit      int           // a message is sent so often, times the order of magnitude of the number of nodes
	Suspicion       int           // a suspicion lasts so many probes, times the same
	SuspicionMax    int           // and so many times as long without confirmations
	Awareness       int           // how many times slower a late node probes at most
	Gossip          time.Duration // between two rounds of gossip
	GossipNodes     int           // packets in a round
	GossipToTheDead time.Duration // how long a dead node is still told of its death
	PushPull        time.Duration // between two exchanges of all state
	Packet          int           // bytes of messages in a packet
}

// LAN is memberlist's for one data centre; a packet of 1,400 bytes without what encryption and the cluster's name take.
func LAN() Rules {
	return Rules{
		Probe: time.Second, ProbeTimeout: 500 * time.Millisecond, Indirect: 3, Retransmit: 4, Suspicion: 4, SuspicionMax: 6, Awareness: 8,
		Gossip: 200 * time.Millisecond, GossipNodes: 3, GossipToTheDead: 30 * time.Second, PushPull: 30 * time.Second, Packet: 1330,
	}
}

// retransmits is how often a message is sent.
func (r Rules) retransmits(nodes int) int {
	return r.Retransmit * int(math.Ceil(math.Log10(float64(nodes+1))))
}

// suspicion is how long a suspicion lasts: with enough confirmations, and without any.
func (r Rules) suspicion(nodes int) (shortest, longest time.Duration) {
	scale := max(1, math.Log10(max(1, float64(nodes))))
	shortest = time.Duration(r.Suspicion) * time.Duration(scale*1000) * r.Probe / 1000
	return shortest, time.Duration(r.SuspicionMax) * shortest
}

// maxConfirmations is how many confirmations the model counts: as many as memberlist's rules for a data centre ask for.
const maxConfirmations = 2

// confirmations is how many nodes must confirm a suspicion to make it as short as it gets.
func (r Rules) confirmations(nodes int) int {
	k := min(r.Suspicion-2, maxConfirmations)
	if nodes-2 < k {
		return 0
	}
	return k
}

// lasts is how long a suspicion lasts that has n of k confirmations.
func lasts(n, k int, shortest, longest time.Duration) time.Duration {
	if k < 1 {
		return shortest
	}
	part := math.Log(float64(n)+1) / math.Log(float64(k)+1)
	raw := longest.Seconds() - part*(longest.Seconds()-shortest.Seconds())
	return max(shortest, time.Duration(math.Floor(1000*raw))*time.Millisecond)
}

// exchange is between two exchanges of all state: in large clusters less often.
func (r Rules) exchange(nodes int) time.Duration {
	const threshold = 32
	if nodes <= threshold {
		return r.PushPull
	}
	return time.Duration(math.Ceil(math.Log2(float64(nodes))-math.Log2(threshold))+1) * r.PushPull
}
