package shell

import (
	"mobula/internal/direct"
	"mobula/internal/ids"
)

// Underway gives the calls that have not ended, but for those that the owner has. It takes as long as there are calls, and holds them up meanwhile.
func (c *Callee) Underway() (all []direct.Underway) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in := make(map[*Call]direct.Underway)
	var far []uint64 // of an actor in another process: what has begun
	for _, l := range c.links {
		switch {
		case l.broken:
		case l.far != nil:
			far = l.far.Begun()
		default:
			l.to.underway(c, in)
		}
	}
	c.core.Look(func(k *direct.Call, at direct.Place, ahead int) {
		call := callOf(k)
		u := direct.Underway{Ahead: ahead}
		if at == direct.OnItsWay {
			var there bool
			if u, there = in[call]; far != nil {
				u.Runs = k.Runs(far)
			} else if !there {
				return // it has ended, and its answer comes
			}
		}
		call.shown = true
		u.ID, u.Own, u.Place, u.Order, u.Tries = k.ID, call.Own, at, k.Order(), k.Tries()
		all = append(all, u)
	})
	return all
}

// Ended finds a call that has ended, and whose result somebody holds: what it came to, and whose Own it is; nil: there is none. It looks through all that there are.
func (p *Process) Ended(id ids.TaskID) (end *direct.Outcome, own any) {
	for _, c := range p.all() {
		if end, own = c.ended(id); end != nil {
			break
		}
	}
	return end, own
}

func (c *Callee) ended(id ids.TaskID) (*direct.Outcome, any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := c.calls; k != nil; k = k.next {
		if k.ID == id && k.end != nil {
			k.shown = true
			return k.end, k.Own
		}
	}
	return nil, nil
}

// underway adds where the calls of a Callee are, whose lock is held.
func (m *Mailbox) underway(of *Callee, into map[*Call]direct.Underway) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.core.Look(func(in *direct.Incoming, runs, aside bool, ahead int) {
		if k, ok := in.Payload.(*Call); ok && k.of == of {
			into[k] = direct.Underway{Runs: runs, Aside: aside, Ahead: ahead, To: m.cfg.Instance}
		}
	})
}

// Underway gives the calls of all actors that have not ended.
func (p *Process) Underway() (all []direct.Underway) {
	for _, c := range p.all() {
		all = append(all, c.Underway()...)
	}
	return all
}
