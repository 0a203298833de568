package inspect

import (
	"context"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/state"
	"mobula/raylet/owner"
)

// Uncounted tells which actors a job's owner numbers no calls to.
func (n *Inspector) Uncounted(ctx context.Context, r state.UncountedRequest) (out state.Uncounted, err error) {
	if len(r.Actors) > state.MaxUncounted {
		return out, errs.New(errs.CodeInvalid, "%d actors, at most %d in one request", len(r.Actors), state.MaxUncounted)
	}
	actors := make([]ids.ActorID, len(r.Actors))
	for i, b := range r.Actors {
		id, ok := ids.TaskOf(b)
		if !ok {
			return out, errs.New(errs.CodeInvalid, "actor %d has %d bytes, want %d", i, len(b), ids.TaskSize)
		}
		actors[i] = ids.ActorID(id)
	}
	job := ids.JobID(r.Job)
	o, err := n.ownerOf(job, "the program")
	if err != nil {
		return out, err
	}
	out.Actors, err = InOwner(ctx, o, func(c *owner.Core) []int { return c.Uncounted(actors) })
	return out, err
}
