package shell

import (
	"errors"
	"fmt"

	"github.com/hashicorp/memberlist"

	"mobula/remote"
	"mobula/remote/membership"
)

// maxState bounds the loads that two nodes exchange with all their state, in bytes. Memberlist takes 20 MiB with all that is around them.
const maxState = 4 << 20

// protocol is the version of what nodes gossip besides memberlist's own. Memberlist lets nodes meet only if each understands what the others speak.
const protocol = 1

// delegate is what memberlist calls, from several goroutines, and often with its locks held: nothing here calls memberlist or waits.
type delegate struct{ *Membership }

var (
	errOver    = errors.New("the life is over")
	errAnother = errors.New("the name is of another life than the metadata")
)

// describe reads what memberlist has of a node.
func describe(n *memberlist.Node) (membership.Node, error) {
	life, err := membership.ParseName(n.Name)
	if err != nil {
		return membership.Node{}, err
	}
	out, err := membership.ParseMeta(n.Meta)
	if err != nil {
		return membership.Node{}, err
	}
	if out.Life != life {
		return membership.Node{}, fmt.Errorf("%w: %s", errAnother, n.Name)
	}
	out.Addresses.Gossip = n.Address()
	return out, nil
}

// NotifyAlive implements memberlist.AliveDelegate: a life that is over, or is described by garbage, is not let in.
func (d delegate) NotifyAlive(n *memberlist.Node) error {
	node, err := describe(n)
	if err != nil {
		d.refused.Add(1)
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loads.Ended(node.Life) && node.Life != d.self {
		return errOver
	}
	return nil
}

// NotifyJoin implements memberlist.EventDelegate.
func (d delegate) NotifyJoin(n *memberlist.Node) {
	node, err := describe(n)
	if err != nil || node.Life == d.self {
		return // NotifyAlive has counted it
	}
	d.mu.Lock()
	d.alive[node.Life] = node
	d.mu.Unlock()
	d.news.add(about{sourceGossip, node.Life}, membership.Seen{Node: node})
}

// NotifyUpdate implements memberlist.EventDelegate.
func (d delegate) NotifyUpdate(n *memberlist.Node) { d.NotifyJoin(n) }

// NotifyLeave implements memberlist.EventDelegate. Memberlist does not say whether the node has failed or left: a Goodbye does.
func (d delegate) NotifyLeave(n *memberlist.Node) {
	life, err := membership.ParseName(n.Name)
	if err != nil || life == d.self {
		return
	}
	d.mu.Lock()
	delete(d.alive, life)
	d.mu.Unlock()
	d.news.add(about{sourceGossip, life}, membership.Failed{Life: life})
}

// NotifyConflict implements memberlist.ConflictDelegate.
func (d delegate) NotifyConflict(here, there *memberlist.Node) {
	if life, err := membership.ParseName(here.Name); err == nil {
		d.news.add(about{sourceClash, life}, membership.Clash{Life: life, Addresses: [2]string{here.Address(), there.Address()}})
	}
}

// NodeMeta implements memberlist.Delegate.
func (d delegate) NodeMeta(int) []byte { return d.meta }

// NotifyMsg implements memberlist.Delegate. What is news is gossiped on.
func (d delegate) NotifyMsg(b []byte) {
	m, err := membership.ParseMessage(b)
	if err != nil {
		d.refused.Add(1)
		return
	}
	switch m := m.(type) {
	case membership.Load:
		if d.takeLoad(m) {
			d.queue.load(m)
		}
	case membership.Goodbye:
		if d.end(m.Life) {
			d.queue.goodbye(m, nil)
			d.news.add(about{sourceGoodbye, m.Life}, membership.Leaving(m))
		}
	}
}

// GetBroadcasts implements memberlist.Delegate.
func (d delegate) GetBroadcasts(overhead, limit int) [][]byte { return d.queue.take(overhead, limit) }

// LocalState implements memberlist.Delegate.
func (d delegate) LocalState(bool) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loads.Snapshot(maxState)
}

// MergeRemoteState implements memberlist.Delegate.
func (d delegate) MergeRemoteState(b []byte, _ bool) {
	loads, err := membership.ParseSnapshot(b)
	if err != nil {
		d.refused.Add(1)
	}
	for _, l := range loads {
		d.takeLoad(l)
	}
}

// takeLoad passes a load on that is later than the one before.
func (m *Membership) takeLoad(l membership.Load) bool {
	if l.Life.Home == m.self.Home {
		return false
	}
	m.mu.Lock()
	later := m.loads.Offer(l)
	m.mu.Unlock()
	if later {
		m.news.add(aboutLoad(l.Life.Home), membership.Gossiped{Load: l})
	}
	return later
}

// end notes that a life is over, and tells whether that is news.
func (m *Membership) end(l remote.Life) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loads.End(l)
}
