package home

import (
	"context"

	"mobula/internal/home/register"
)

// A Register is the control plane's table of homes. Begin begins a life of a directory: it gives a new directory a home that nobody had
// before, and each life an epoch above those of all earlier lives. It waits for the control plane until ctx ends. If two lives claim the same
// epoch, one gets an error. To repeat a claim for the same life is harmless.
type Register interface {
	Begin(ctx context.Context, c register.Claim) (register.Row, error)
}

// Own is the register of a node that is its own control plane: the claim is all that is known.
type Own struct{}

// Begin believes the claim.
func (Own) Begin(_ context.Context, c register.Claim) (register.Row, error) {
	if c.Last == nil {
		return register.First(0, c), nil
	}
	return c.Last.Next(c)
}
