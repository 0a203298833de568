package shell

import "mobula/internal/ids"

// Find gives the calls of an actor, that have not ended and for which is is true. That is called under the Callee's lock, as Up is.
func (p *Process) Find(actor ids.ActorID, is func(*Call) bool) []*Call {
	p.mu.RLock()
	c := p.callees[actor]
	p.mu.RUnlock()
	if c == nil {
		return nil
	}
	return c.find(is)
}

// FindAll is Find for all actors.
func (p *Process) FindAll(is func(*Call) bool) (found []*Call) {
	for _, c := range p.all() {
		found = append(found, c.find(is)...)
	}
	return found
}

func (c *Callee) find(is func(*Call) bool) (found []*Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := c.calls; k != nil; k = k.next {
		if !k.settled && is(k) {
			k.shown = true
			found = append(found, k)
		}
	}
	return found
}
