package route

import (
	"slices"

	"mobula/internal/ids"
	"mobula/wire"
)

// eachHeld calls f for each object that who gets a message holds from then on.
func eachHeld(m wire.Msg, f func(ids.ObjectID)) {
	all := func(refs []ids.ObjectID) {
		for _, id := range refs {
			f(id)
		}
	}
	result := func(r *wire.Result) {
		all(r.Value.Refs)
		if r.Err != nil {
			all(r.Err.AllRefs())
		}
	}
	args := func(spec *wire.TaskSpec) {
		for i := range spec.Args {
			if a := &spec.Args[i]; !a.Ref.IsZero() {
				f(a.Ref)
			} else {
				all(a.Value.Refs)
			}
		}
	}
	outcome := func(o *wire.CallOutcome) {
		if o == nil {
			return
		}
		for i := range o.Results {
			result(&o.Results[i])
		}
		all(o.Err.AllRefs())
	}
	switch m := m.(type) {
	case *wire.AddRef:
		f(m.ID)
	case *wire.PutValue:
		all(m.Value.Refs)
	case *wire.Seal:
		all(m.Value.Refs)
	case *wire.Submit:
		args(m.Spec)
	case *wire.Adopt:
		args(m.Spec)
		outcome(m.Outcome)
	case *wire.Told:
		outcome(m.Outcome)
	case *wire.StreamItem:
		result(&m.Result)
	case *wire.Done:
		for i := range m.Results {
			result(&m.Results[i])
		}
		if m.Err != nil {
			all(m.Err.AllRefs())
		}
	}
}

// Crosses tells whether a message that goes to the owner of job names objects of others that it is to hold.
func Crosses(job ids.JobID, m wire.Msg) bool {
	found := false
	eachHeld(m, func(id ids.ObjectID) { found = found || id.Job() != job })
	return found
}

// Foreign gives the objects of other jobs that the owner of job is to hold when it gets a message, by job.
func Foreign(job ids.JobID, m wire.Msg) map[ids.JobID][]ids.ObjectID {
	refs := make(map[ids.JobID][]ids.ObjectID)
	eachHeld(m, func(id ids.ObjectID) {
		if of := id.Job(); of != job && !slices.Contains(refs[of], id) {
			refs[of] = append(refs[of], id)
		}
	})
	return refs
}
