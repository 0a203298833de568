package owner

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// What lies inside a value, or an error, that somebody can get lives as long as that: an object's result, a stream's error, the
// reason of an actor's death. The references that a client finds there it borrows before it lets go of what it found them in.

// inside gives the objects that a result has references to.
func inside(res *wire.Result) []ids.ObjectID {
	switch {
	case res == nil:
		return nil
	case res.Kind == wire.ResultError:
		return res.Err.AllRefs()
	}
	return res.Value.Refs
}

// holdInner counts objects that something is about to contain.
func (os *objects) holdInner(refs []ids.ObjectID) {
	for _, id := range refs {
		in := os.ensure(id)
		os.revive(in)
		in.objs++
	}
}

// dropInner gives up what holdInner counted.
func (os *objects) dropInner(refs []ids.ObjectID) {
	for _, id := range refs {
		if in := os.object(id); in != nil {
			in.objs--
			os.loosen(in)
		}
	}
}

// setCause notes why an actor restarts or is dead, and the failure of a child that it is to be charged with; nil: there is none.
func (as *actors) setCause(a *actorRec, cause, hurt *errs.Error) {
	as.objects.holdInner(cause.AllRefs())
	as.objects.holdInner(hurt.AllRefs())
	as.objects.dropInner(a.cause.AllRefs())
	as.objects.dropInner(a.hurt.AllRefs())
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
	ss.objects.holdInner(s.held())
	ss.objects.dropInner(before)
}

// eachInside calls f with what each thing contains that holds objects: results, the errors of open streams, what actors died of.
func (c *Core) eachInside(f func(refs []ids.ObjectID)) {
	c.eachObject(func(o *objRec) { f(inside(o.res)) })
	if c.streamCount > 0 {
		c.tasks.eachTask(func(t *taskRec) {
			if t.nret == wire.Streaming {
				f(t.x.stream.held())
			}
		})
	}
	for _, p := range c.passing {
		f(p.refs)
	}
	for _, a := range c.actors.byID {
		f(a.cause.AllRefs())
		f(a.hurt.AllRefs())
	}
}
