package membership

import (
	"fmt"
	"time"
)

// Fanout is to how many nodes each node passes a load on that is new to it. With 4 a message that spreads so reaches 98 % of the nodes, however many there
// are: the share x that hears of it solves x = 1 - exp(-4x). The others get it with the next exchange of all state, or get the next load.
const Fanout = 4

// frame is what a packet adds to a load, in bytes: the gossip's lengths, and the load's own head.
const frame = 24

// Pace is how often a node has its load gossiped. A load that is told to n nodes costs each of them Fanout messages, so the cost for a node
// grows with the number of nodes and shrinks with the interval.
type Pace struct {
	// Budget is how many bytes a second of loads a node sends at most.
	Budget int
	// Min is between two loads of a node in a small cluster.
	Min time.Duration
}

// DefaultPace takes half of what memberlist's gossip carries with its constants for one data centre: 3 packets of 1,400 bytes each 200 ms are 21 KB/s, of which
// membership itself must have its part. A hundred nodes with loads of 150 bytes so report every 7 s, a thousand every 68 s.
func DefaultPace() Pace { return Pace{Budget: 10 << 10, Min: time.Second} }

// Interval is how long a node waits between its loads: nodes is the size of the cluster, size that of a load.
func (p Pace) Interval(nodes, size int) time.Duration {
	bytes := float64(nodes) * Fanout * float64(size+frame)
	return max(p.Min, time.Duration(bytes/float64(p.Budget)*float64(time.Second)))
}

// Validate tells what is wrong.
func (p Pace) Validate() error {
	if p.Budget < 1 || p.Min <= 0 {
		return fmt.Errorf("loads of %d bytes a second, %v apart; both must be above 0", p.Budget, p.Min)
	}
	return nil
}
