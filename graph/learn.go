package graph

// measure is what was seen of a group's or a prefix's tasks.
type measure struct {
	n, bytes, ns int64
}

func (m *measure) add(bytes, ns int64) {
	m.n++
	m.bytes += bytes
	m.ns += ns
}

func (c *Core) learn(t int32, bytes, ns int64) {
	c.all.add(bytes, ns)
	g := c.g.group[t]
	c.known[g].add(bytes, ns)
	c.kinds[c.g.groups[g].kind].add(bytes, ns)
}

// seen gives what is known of tasks like t, or nil: its group, else its prefix.
func (c *Core) seen(t int32) *measure {
	g := c.g.group[t]
	if m := &c.known[g]; m.n > 0 {
		return m
	}
	if m := &c.kinds[c.g.groups[g].kind]; m.n > 0 {
		return m
	}
	return nil
}

// size is what a result is expected to take, in bytes, or 1 as long as nothing is known at all.
func (c *Core) size(t int32) float64 {
	if c.tasks[t].state == Memory {
		return float64(c.tasks[t].bytes)
	}
	if m := c.seen(t); m != nil {
		return float64(m.bytes) / float64(m.n)
	}
	return c.mean()
}

// mean is what a result takes on average, as far as is known.
func (c *Core) mean() float64 {
	if c.all.n == 0 || c.all.bytes == 0 {
		return 1
	}
	return float64(c.all.bytes) / float64(c.all.n)
}

// meanDuration is how long a task takes on average, in ns, as far as is known.
func (c *Core) meanDuration() int64 {
	if c.all.n == 0 {
		return defaultDuration
	}
	return c.all.ns / c.all.n
}

// duration is how long a task is expected to run.
func (c *Core) duration(t int32) int64 {
	if m := c.seen(t); m != nil {
		return m.ns / m.n
	}
	return defaultDuration
}
