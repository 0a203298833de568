package owner

import (
	"mobula/internal/ids"
	"mobula/raylet/owner/actor"
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
	jb.peers.leaving = make(map[ids.JobID]bool) // nobody is waited for: the home goes too
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
