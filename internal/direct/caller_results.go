package direct

// This file is what becomes of results, and of references to them.

// results are those that only this process has, the oldest first.
type results struct {
	oldest, newest *Call
	bytes          int64
}

func (r *results) add(k *Call) {
	if k.older = r.newest; k.older != nil {
		k.older.newer = k
	} else {
		r.oldest = k
	}
	r.newest = k
	r.bytes += k.outcome.Bytes
}

func (r *results) remove(k *Call) {
	if k.older != nil {
		k.older.newer = k.newer
	} else {
		r.oldest = k.newer
	}
	if k.newer != nil {
		k.newer.older = k.older
	} else {
		r.newest = k.older
	}
	k.older, k.newer = nil, nil
	r.bytes -= k.outcome.Bytes
}

// Held is how many bytes of results only this process has.
func (c *Caller) Held() int64 { return c.results.bytes }

// settle ends a call. What the owner has adopted it is told before the host is told that the answer was taken.
func (c *Caller) settle(k *Call, o *Outcome) {
	c.touch(k).stage, k.outcome = ended, o
	c.do(Effect{Do: Settle, Call: k, Outcome: o})
	switch {
	case k.submitted:
	case k.adopted:
		c.do(Effect{Do: Report, Call: k, Outcome: o})
	case !k.dropped && o.Bytes > 0:
		k.alone = true
		c.results.add(k)
	}
}

// letGo takes a result off those that only this process has.
func (c *Caller) letGo(k *Call) {
	if k.alone {
		c.results.remove(k)
		c.touch(k).alone = false
	}
}

// relieve gives the oldest results to the owner, until it has so many bytes of them.
func (c *Caller) relieve(bytes int64) {
	for bytes > 0 && c.results.oldest != nil {
		k := c.results.oldest
		bytes -= k.outcome.Bytes
		c.letGo(k)
		k.adopted = true
		c.adopt(k)
	}
}

// leaves has the owner adopt a result before a reference to it leaves.
func (c *Caller) leaves(k *Call) {
	switch {
	case k.known:
		c.do(Effect{Do: Depart, Call: k})
	case k.adopted:
		c.touch(k).leaving++
	default:
		c.touch(k).adopted = true
		k.leaving++
		c.letGo(k)
		c.adopt(k)
	}
}

// adopt tells the owner of a call, and where it is: the host there is asked for it if this process ends.
func (c *Caller) adopt(k *Call) {
	e := Effect{Do: Adopt, Call: k}
	switch k.stage {
	case onChannel:
		e.Channel, e.Instance, e.No = c.ch.id, c.ch.instance, k.no
	case late, ended:
		e.Outcome = k.outcome
	case inLine, withOwner:
	}
	c.do(e)
}

func (c *Caller) ownerKnows(k *Call) {
	c.touch(k).known = true
	for ; k.leaving > 0; k.leaving-- {
		c.do(Effect{Do: Depart, Call: k})
	}
}
