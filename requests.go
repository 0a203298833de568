package mobula

import (
	"context"

	"github.com/fxamacker/cbor/v2"

	"mobula/internal/client"
	"mobula/internal/errs"
)

// The cold requests that the package makes; bodies and replies are CBOR maps.
const (
	methodGetActor = "actor.get"
	methodStats    = "stats"
)

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

// Stats is what the node counts. Sizes are in bytes; what is not a gauge counts from the node's start.
type Stats struct {
	StoreBytes    int64 `cbor:"store_bytes" json:"store_bytes"`       // the store's limit
	Allocated     int64 `cbor:"allocated" json:"allocated"`           // of it
	Pinned        int64 `cbor:"pinned" json:"pinned"`                 // of what is allocated
	Inline        int64 `cbor:"inline" json:"inline"`                 // values held in messages and tables
	Objects       int64 `cbor:"objects" json:"objects"`               // in the store, spilled ones too
	SpilledBytes  int64 `cbor:"spilled_bytes" json:"spilled_bytes"`   // written to spill files
	RestoredBytes int64 `cbor:"restored_bytes" json:"restored_bytes"` // read back
	DiskBytes     int64 `cbor:"disk_bytes" json:"disk_bytes"`         // in spill files now
	Tasks         int64 `cbor:"tasks" json:"tasks"`                   // finished, whatever the outcome
	Restarts      int64 `cbor:"restarts" json:"restarts"`             // of components
}

// Stats asks the node what it counts.
func (c *Cluster) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	err := c.Request(ctx, methodStats, struct{}{}, &s)
	return s, err
}
