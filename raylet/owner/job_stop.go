package owner

import (
	"mobula/internal/errs"
	"mobula/raylet/owner/actor"
	"mobula/raylet/owner/record"
)

// A node that is stopped in order ends its jobs, but for detached actors and what those have under way: that is to be there when the
// node starts again, as if it had been killed. So the core ends the rest, writes down that its actors are to restart, and then
// takes nothing in any more: that workers end now is nobody's fault, and is not to be in the log.

// stop is the core's last step, unless nothing of the job is left: then it ends as any job does.
func (jb *job) stop() {
	if jb.recovering { // the log is as the last life of the node has left it
		jb.stopped = true
		return
	}
	jb.endJob(nil)
	jb.sweepAll()
	if jb.ended {
		return
	}
	jb.stopped = true
	for _, id := range jb.actors.actorIDs() {
		if a := jb.actors.byID[id]; a.rec != nil && a.state == actor.Alive {
			jb.journal.logStopped(a)
		}
	}
}

// logStopped records that an actor is to be made again, which costs it no restart.
func (j *journal) logStopped(a *actorRec) {
	at := len(j.logbuf)
	r := record.Actor{Actor: a.id, State: actor.Restarting, Restarts: a.restarts, Named: a.claimed, Err: errs.New(errs.CodeShutdown, "the node was stopped, and restarts actor %v", a.id)}
	if a.stop != nil { // or ended, as was asked
		r.Err, r.Stop = a.stop, true
	}
	j.logbuf = record.AppendActor(j.logbuf, j.nextRecord(), &r)
	j.logged(at, laterCookie(a.rec))
}
