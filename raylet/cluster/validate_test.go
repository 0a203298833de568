package cluster

import (
	"fmt"
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// validate counts everything that the core counts again.
func (c *Core) validate() error {
	promised := map[ids.Home]map[string]int64{}
	held, unheard := map[*class]int{}, map[*class]int{}
	of := map[*job]int{}
	type at struct {
		j *job
		n ids.Home
	}
	leases, wants := map[at]int{}, map[at]int{}
	for id, l := range c.leases {
		of[l.job]++
		leases[at{l.job, id.Home()}]++
		if c.peers[id.Home()] == nil {
			return fmt.Errorf("lease %v is of a node that is gone", id)
		}
		if l.class != nil {
			held[l.class]++
			unheard[l.class] += bit(!l.heard)
		}
	}
	queued := 0
	for id, j := range c.jobs {
		if j.id != id || j.leases != of[j] {
			return fmt.Errorf("job %v has %d leases, counted %d", id, j.leases, of[j])
		}
		for _, cl := range j.classes {
			placed := 0
			for i, s := range cl.shares {
				if i > 0 && cl.shares[i-1].node >= s.node {
					return fmt.Errorf("class %v: its shares are out of order", cl.key)
				}
				if s.placed < 0 || s.asked < 0 || s.asked > 0 && !s.stands {
					return fmt.Errorf("class %v: the share %+v", cl.key, s)
				}
				if c.peers[s.node] == nil {
					return fmt.Errorf("class %v has a share of node %v, which is gone", cl.key, s.node)
				}
				placed += s.placed
				wants[at{j, s.node}] += bit(s.stands)
				for _, x := range cl.shape.Need {
					if promised[s.node] == nil {
						promised[s.node] = map[string]int64{}
					}
					promised[s.node][x.Name] += int64(s.placed) * x.Amount
				}
			}
			switch {
			case placed != cl.placed:
				return fmt.Errorf("class %v: %d placed, counted %d", cl.key, cl.placed, placed)
			case held[cl] != cl.leases:
				return fmt.Errorf("class %v: %d leases, counted %d", cl.key, cl.leases, held[cl])
			case unheard[cl] != cl.unheard:
				return fmt.Errorf("class %v: %d leases that its owner may not know, counted %d", cl.key, cl.unheard, unheard[cl])
			case cl.queued != slices.Contains(c.waiting, cl):
				return fmt.Errorf("class %v: in the list of those that wait: %v, noted %v", cl.key, !cl.queued, cl.queued)
			case cl.told == 0 && (cl.left > 0 || cl.placed > 0 || cl.queued) && !j.resyncing:
				return fmt.Errorf("class %v is not wanted, and has %d left, %d placed", cl.key, cl.left, cl.placed)
			case cl.told == 0 && cl.leases == 0 && !cl.refused && !cl.crossed && !j.resyncing:
				return fmt.Errorf("class %v is kept for nothing", cl.key)
			}
			queued += bit(cl.queued)
		}
		for i, p := range j.places {
			if i > 0 && j.places[i-1].node >= p.node || p.node == c.cfg.Self || c.peers[p.node] == nil {
				return fmt.Errorf("job %v is at %+v", id, p)
			}
			if k := (at{j, p.node}); !p.closing && (p.leases != leases[k] || p.wants != wants[k]) {
				return fmt.Errorf("job %v has %+v, counted %d leases, %d wants", id, p, leases[k], wants[k])
			} else if p.closing && (leases[k] > 0 || wants[k] > 0) {
				return fmt.Errorf("job %v is being closed on node %v, and has %d leases, %d wants there", id, p.node, leases[k], wants[k])
			}
			delete(leases, at{j, p.node})
			delete(wants, at{j, p.node})
		}
		delete(leases, at{j, c.cfg.Self})
		delete(wants, at{j, c.cfg.Self})
	}
	if queued != len(c.waiting) {
		return fmt.Errorf("%d classes wait, %d are listed", queued, len(c.waiting))
	}
	for k, n := range leases {
		return fmt.Errorf("job %v has %d leases on node %v, where it is not open", k.j.id, n, k.n)
	}
	for k, n := range wants {
		if n > 0 {
			return fmt.Errorf("job %v has %d wants on node %v, where it is not open", k.j.id, n, k.n)
		}
	}
	for id, p := range c.peers {
		for _, r := range p.promised {
			if r.Amount != promised[id][r.Name] {
				return fmt.Errorf("node %v: %v promised, counted %d", id, r, promised[id][r.Name])
			}
			delete(promised[id], r.Name)
		}
		for name, n := range promised[id] {
			if n > 0 {
				return fmt.Errorf("node %v: %d of %s is promised and not noted", id, n, name)
			}
		}
		for _, l := range p.recent {
			if c.leases[l] == nil {
				return fmt.Errorf("node %v: lease %v is not held", id, l)
			}
		}
	}
	return c.validateView()
}

// validateView checks that what is off a node's amounts is what was promised, or granted since its report; so nothing is free that was given away.
func (c *Core) validateView() error {
	for i := range c.view.Nodes {
		n := &c.view.Nodes[i]
		if c.peers[n.ID] == nil {
			return fmt.Errorf("the view has node %v, which is gone", n.ID)
		}
		if i > 0 && c.view.Nodes[i-1].ID >= n.ID || !slices.EqualFunc(n.Total, n.Free, func(a, b wire.Resource) bool { return a.Name == b.Name }) {
			return fmt.Errorf("the view has %+v", n)
		}
	}
	return nil
}
