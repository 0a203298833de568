package inspect

import (
	"context"
	"errors"

	"mobula/actors"
	"mobula/gcs/directory"
	"mobula/internal/ids"
	"mobula/raylet/owner"
)

// GivesUp tells whether an actor of this node is giving its name up, or was to after what a program of a job asked for before this. Of
// an actor of another node it is false.
func (n *Inspector) GivesUp(ctx context.Context, job ids.JobID, name directory.Name, actor ids.ActorID) (bool, error) {
	if o := n.node.Owner(job); o != nil { // what the program has asked for goes by its job's owner
		if _, err := InOwner(ctx, o, func(*owner.Core) struct{} { return struct{}{} }); err != nil && !n.ended(o) {
			return false, err
		}
	}
	gives, err := inDirectory(ctx, n, func(c *directory.Core) bool { return c.GivesUp(name, actor) })
	if errors.Is(err, actors.ErrStopped) {
		return false, nil // the table is all there is to know
	}
	return gives, err
}
