package owner

import "mobula/wire"

func (jb *job) clientJoined(ev ClientJoined) {
	cl := jb.clients.byID[ev.Client]
	if cl == nil || cl.gone && len(cl.leases) == 0 { // of one that is gone, the handles are being taken
		cl = jb.clients.addClient(ev.Client, ev.Role)
	}
	if cl.joined {
		return
	}
	cl.joined, cl.role, cl.ofOtherJob, cl.straight = true, ev.Role, ev.Guest, ev.Straight
	if ev.Role == wire.RoleDriver {
		jb.clients.drivers++
	}
	if jb.cfg.CreditWindow > 0 {
		jb.toClient(cl, &wire.Credit{Bytes: jb.cfg.CreditWindow})
	}
}

// clientGone drops a client's handles and, of a worker, what ran on it.
func (jb *job) clientGone(ev ClientGone) {
	cl := jb.clients.byID[ev.Client]
	if cl == nil || cl.gone {
		return
	}
	cl.gone = true
	jb.gets.dropWindow(cl)
	if cl.lostErr == nil {
		cl.lostErr = ev.Err
	}
	if cl.role == wire.RoleDriver && cl.joined {
		if jb.clients.drivers--; jb.clients.drivers == 0 && !jb.recovering {
			jb.endJob(ev.Err)
		}
	}
	jb.straight.processGone(cl)
	jb.deadlocks.forgetWaits(cl)
	if !jb.ended { // else what it holds goes with the job
		jb.startSweep(cl)
	}
	jb.actors.callerGone(cl)
	switch {
	case cl.ofOtherJob:
		jb.foreign.workerGone(cl)
	case len(cl.leases) > 0:
		jb.deaths.workerLost(cl)
	}
	jb.clients.maybeForget(cl)
}
