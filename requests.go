package mobula

import (
	"context"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/client"
	"mobula/internal/errs"
)

// The cold requests that the package makes; bodies and replies are CBOR maps.
const methodGetActor = "actor.get"

type actorRequest struct {
	Namespace string `cbor:"namespace"`
	Name      string `cbor:"name"`
}

type actorReply struct {
	Actor []byte `cbor:"actor"` // 16 bytes
}

func request(ctx context.Context, c *client.Client, method string, in, out any) error {
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

// Request asks the cluster for something by name: lists, states, settings. in and out are encoded as
// CBOR; what there is to ask is the command line's list. It is for tools, not for a task's path.
func (c *Cluster) Request(ctx context.Context, method string, in, out any) error {
	return request(ctx, c.client, method, in, out)
}
