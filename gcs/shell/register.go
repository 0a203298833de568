package shell

import (
	"context"

	"mobula/gcs"
	"mobula/internal/home/register"
)

// Register keeps the register of homes in the control plane.
type Register struct {
	GCS  *GCS
	Node string // the node that asks
}

// Begin asks for the life's row.
func (r Register) Begin(ctx context.Context, c register.Claim) (register.Row, error) {
	records, err := r.GCS.Call(ctx, gcs.Begin{Claim: c, Node: r.Node})
	if err != nil {
		return register.Row{}, err
	}
	return records[0].(gcs.HomeRecord).Row, nil
}
