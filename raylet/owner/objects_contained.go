package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// What lies inside a value, or an error, that somebody can get lives as long as that: an object's result, a stream's error, the
// reason of an actor's death. The references that a client finds there it borrows before it lets go of what it found them in.

// containedIn gives the objects that a result has references to.
func containedIn(res *wire.Result) []ids.ObjectID {
	switch {
	case res == nil:
		return nil
	case res.Kind == wire.ResultError:
		return res.Err.AllRefs()
	}
	return res.Value.Refs
}

// retainContained counts objects that something is about to contain.
func (os *objects) retainContained(refs []ids.ObjectID) {
	for _, id := range refs {
		in := os.ensure(id)
		os.revive(in)
		in.objs++
	}
}

// releaseContained gives up what retainContained counted.
func (os *objects) releaseContained(refs []ids.ObjectID) {
	for _, id := range refs {
		if in := os.object(id); in != nil {
			in.objs--
			os.queueRecount(in)
		}
	}
}

// setCause notes why an actor restarts or is dead, and the failure of a child that it is to be charged with; nil: there is none.
func (as *actors) setCause(a *actorRec, cause, hurt *errs.Error) {
	as.objects.retainContained(cause.AllRefs())
	as.objects.retainContained(hurt.AllRefs())
	as.objects.releaseContained(a.cause.AllRefs())
	as.objects.releaseContained(a.hurt.AllRefs())
	a.cause, a.hurt = cause, hurt
}

// held gives the objects that a stream's error holds: until its readers have said that they hold them.
func (s *streamRec) held() []ids.ObjectID {
	if s.closed {
		return nil
	}
	return s.err.AllRefs()
}

// setError notes what a stream has ended with.
func (ss *streams) setError(s *streamRec, err *errs.Error) {
	before := s.held()
	s.err = err
	ss.objects.retainContained(s.held())
	ss.objects.releaseContained(before)
}

// eachContainer calls f with what each thing contains that holds objects: results, the errors of open streams, what actors died of.
func (c *Core) eachContainer(f func(refs []ids.ObjectID)) {
	c.eachObject(func(o *objRec) { f(containedIn(o.res)) })
	if c.streamCount > 0 {
		c.tasks.eachTask(func(t *taskRec) {
			if t.nret == wire.Streaming {
				f(t.x.stream.held())
			}
		})
	}
	for _, p := range c.transfers {
		f(p.refs)
	}
	for _, list := range c.handovers {
		for _, h := range list {
			if h.of != nil {
				f([]ids.ObjectID{h.of.id})
			}
		}
	}
	for _, a := range c.actors.byID {
		f(a.cause.AllRefs())
		f(a.hurt.AllRefs())
	}
}
