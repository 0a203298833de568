package sched

// reclaim asks for leases back on behalf of those that wait: tasks that leave a get, then classes in their turn.
// It counts resources that are coming already, so that it asks for no more than needed.
func (c *Core) reclaim(now int64) {
	if c.active.n == 0 || (c.resuming.Len() == 0 && c.jobs.Len() == 0) {
		return
	}
	p := &c.pass
	p.reset(c)
	for _, l := range c.resuming.All() {
		d := demand{{resCPU, c.cpuToResume(l)}}
		if !p.covers(d) && p.left > 0 {
			p.cover(now, d, nil)
		}
		p.spend(d)
	}
	if c.paused && c.running > 0 {
		return
	}
	if c.head != nil {
		p.serve(now, c.head)
	}
	for je := c.jobs.Front(); je != nil && p.left > 0; je = je.Next() {
		for ce := je.Value.(*job).waiting.Front(); ce != nil && p.left > 0; ce = ce.Next() {
			if cl := ce.Value.(*class); cl != c.head {
				p.serve(now, cl)
			}
		}
	}
	if p.wake > 0 {
		c.wakeAt(now, p.wake)
	}
}

// pass is the scratch of one reclaim pass.
type pass struct {
	c      *Core
	coming []int64 // by resource: free, or asked back already
	left   int     // leases that can still be reclaimed
	wake   int64   // when the first lease that is too young is old enough
	marked []*lease
}

func (p *pass) reset(c *Core) {
	p.c, p.left, p.wake = c, 0, 0
	p.coming = append(p.coming[:0], c.res.free...)
	for l := c.active.head; l != nil; l = l.next {
		if l.reclaimed {
			p.add(l.need)
		} else {
			p.left++
		}
	}
}

func (p *pass) add(d demand) {
	for _, x := range d {
		p.coming[x.r] += x.n
	}
}

func (p *pass) spend(d demand) {
	for _, x := range d {
		p.coming[x.r] -= x.n
	}
}

func (p *pass) covers(d demand) bool {
	for _, x := range d {
		if x.n > 0 && p.coming[x.r] < x.n {
			return false
		}
	}
	return true
}

// serve sets aside what a waiting class needs for one lease, and reclaims leases if necessary.
func (p *pass) serve(now int64, cl *class) {
	if p.covers(cl.need) || p.cover(now, cl.need, cl) {
		p.spend(cl.need)
	}
}

// cover reclaims leases until d is covered, or none if it cannot be. A nil class stands for a resume, which takes
// from any class.
func (p *pass) cover(now int64, d demand, cl *class) bool {
	p.marked = p.marked[:0]
	for _, x := range d {
		for p.coming[x.r] < x.n {
			v := p.victim(now, x, cl)
			if v == nil {
				for _, l := range p.marked {
					l.reclaimed = false
					p.spend(l.need)
				}
				return false
			}
			v.reclaimed = true
			p.marked = append(p.marked, v)
			p.add(v.need)
		}
	}
	for _, l := range p.marked {
		p.left--
		l.reclaimed = false // reclaimLease sets it
		p.c.reclaimLease(l)
	}
	return true
}

// victim picks, among the leases that hold some of x.r, one of the job and then of the class that
// holds most of it; of those the one that has run longest.
func (p *pass) victim(now int64, x need, cl *class) *lease {
	if cl != nil {
		cl.use, cl.job.use = 0, 0
	}
	p.measure(x.r)
	var best *lease
	for l := p.c.active.head; l != nil; l = l.next {
		n := l.need.of(x.r)
		if l.reclaimed || n == 0 || !p.mayTake(now, l, n, x.n, cl) {
			continue
		}
		if best == nil || l.class.job.use > best.class.job.use ||
			l.class.job == best.class.job && l.class.use > best.class.use {
			best = l
		}
	}
	return best
}

// measure sums what each class and job holds of a resource in leases not yet reclaimed.
func (p *pass) measure(r int) {
	for l := p.c.active.head; l != nil; l = l.next {
		l.class.use, l.class.job.use = 0, 0
	}
	for l := p.c.active.head; l != nil; l = l.next {
		if !l.reclaimed {
			n := l.need.of(r)
			l.class.use += n
			l.class.job.use += n
		}
	}
}

// mayTake is the rule of fairness. A class may take from one that would not hold less than itself afterwards. A
// class that holds nothing may take in any case, but only within its own job if that holds something. Unless it is
// fresh, it may take only what was held for a quantum: so more classes than slots take turns.
func (p *pass) mayTake(now int64, l *lease, n, asked int64, cl *class) bool {
	switch {
	case cl == nil:
		return true
	case l.class == cl:
		return false
	}
	mine, theirs := cl.use, l.class.use
	same := l.class.job == cl.job
	if !same {
		mine, theirs = cl.job.use, l.class.job.use
	}
	if theirs-n >= mine+asked {
		return true
	}
	if cl.running > 0 || !same && cl.job.use > 0 {
		return false
	}
	if ripe := l.granted + p.c.quantum; !cl.fresh && now < ripe {
		if p.wake == 0 || ripe < p.wake {
			p.wake = ripe
		}
		return false
	}
	return true
}

// reclaimLease asks the owner to return a lease, once.
func (c *Core) reclaimLease(l *lease) {
	if l.reclaimed {
		return
	}
	l.reclaimed = true
	c.counters.Reclaims++
	c.tell(l.class.key.Job, Reclaim{Lease: l.id})
}
