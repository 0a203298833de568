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
func (c *Core) stop() {
	if c.pause != nil { // the log is as the last life of the node has left it
		c.stopped = true
		return
	}
	c.endJob(nil)
	c.sweepAll()
	if c.ended {
		return
	}
	c.stopped = true
	for _, id := range c.actorIDs() {
		if a := c.actors[id]; a.rec != nil && a.state == actor.Alive {
			c.logStopped(a)
		}
	}
}

// logStopped records that an actor is to be made again, which costs it no restart.
func (c *Core) logStopped(a *actorRec) {
	at := len(c.logbuf)
	r := record.Actor{Actor: a.id, State: actor.Restarting, Restarts: a.restarts, Named: a.claimed, Err: errs.New(errs.CodeShutdown, "the node was stopped, and restarts actor %v", a.id)}
	if a.stop != nil { // or ended, as was asked
		r.Err, r.Stop = a.stop, true
	}
	c.logbuf = record.AppendActor(c.logbuf, c.nextRecord(), &r)
	c.logged(at, laterCookie(a.rec))
}
