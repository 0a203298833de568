package owner

// A process died, none of this job's calls ran in its actors, and other jobs had calls of some: what they tell decides who is charged. See
// findCulprit.

// askOtherJobs waits a moment for other jobs to tell which of the actors that died together had calls of theirs: no call of this job's
// ran, and of others' only they know.
func (ds *deaths) askOtherJobs(dead []deadActor) {
	var named []*actorRec
	for _, d := range dead {
		if d.a.claimed && !d.a.ended() {
			named = append(named, d.a)
		}
	}
	if len(named) == 0 {
		return
	}
	q := &culpritInquiry{of: named}
	for _, a := range named {
		a.inquiry = q
	}
	ds.timers.add(ds.now+int64(ds.cfg.InquiryTimeout), timer{kind: timerInquiry, inquiry: q})
}

// callsLost is another job's word that an actor which died had calls of its own.
func (ds *deaths) callsLost(m CallsLost) {
	a := ds.actors.byID[m.Actor]
	switch {
	case a == nil || a.rec == nil || a.ended():
	case a.lease != nil && a.lease.id == m.Lease:
		a.lease.otherJobsCalls = true // its end is told a moment later
	case a.inquiry != nil && a.lostLease == m.Lease:
		q := a.inquiry
		a.inquiry = nil // told by several jobs it is one suspect
		q.suspects = append(q.suspects, a)
	}
}

// inquiryOver decides with what other jobs have told.
func (ds *deaths) inquiryOver(q *culpritInquiry) {
	for _, a := range q.of {
		if a.inquiry == q {
			a.inquiry = nil
		}
	}
	switch len(q.suspects) {
	case 0:
	case 1:
		ds.chargeLate(q.suspects[0])
	default:
		ts := make([]*taskRec, 0, len(q.suspects))
		for _, a := range q.suspects {
			if !a.ended() {
				ts = append(ts, a.rec)
			}
		}
		ds.suspect(ts)
	}
}

// chargeLate charges the restart that an actor has begun.
func (ds *deaths) chargeLate(a *actorRec) {
	if a.ended() || !a.uncharged {
		return
	}
	if !ds.actors.chargeReset(a) {
		ds.actors.failForGood(a, ds.actors.actorDied(a, a.cause))
		return
	}
	ds.life.isolate(a.rec, 0)
	ds.journal.logActor(a)
}
