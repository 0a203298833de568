package shell

import "slices"

// wait is something that is to be done when some calls are not in their lines any more.
type wait struct {
	calls []*Call
	then  func()
}

// WhenSent has something done when all calls that were made of an actor before are sent, or have ended. It is false, and nothing is done, if they are already.
func (c *Callee) WhenSent(then func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := wait{then: then}
	for k := c.calls; k != nil; k = k.next {
		if k.InLine() {
			k.shown = true
			w.calls = append(w.calls, k)
		}
	}
	if len(w.calls) == 0 {
		return false
	}
	c.waits = append(c.waits, w)
	return true
}

// sent takes what is to be done now. The lock is held.
func (c *Callee) sent() (ready []func()) {
	if len(c.waits) == 0 {
		return nil
	}
	c.waits = slices.DeleteFunc(c.waits, func(w wait) bool {
		if slices.ContainsFunc(w.calls, func(k *Call) bool { return k.InLine() }) {
			return false
		}
		ready = append(ready, w.then)
		return true
	})
	return ready
}
