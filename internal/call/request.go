package call

import (
	"context"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/client"
	"mobula/internal/errs"
)

// Request asks the node for something that is not on a task's path.
func Request(ctx context.Context, c *client.Client, method string, in, out any) error {
	body, err := cbor.Marshal(in)
	if err != nil {
		return errs.New(errs.CodeNotEncodable, "request %s: %v", method, err)
	}
	reply, err := c.Request(ctx, method, body)
	if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	if err := cbor.Unmarshal(reply, out); err != nil {
		return errs.New(errs.CodeProtocol, "request %s: the node's answer: %v", method, err)
	}
	return nil
}
