package link

import (
	"mobula/internal/ids"
	"mobula/internal/node/outlet"
	"mobula/raylet/internode"
	"mobula/wire"
)

// Client is the outlet to a client of another node.
type Client struct {
	Box    *Box
	Job    ids.JobID
	Client ids.ClientID
}

// Push is outlet.Outlet's.
func (c *Client) Push(m wire.Msg) {
	if r, ok := m.(outlet.Receipt); ok {
		c.Box.mu.Lock()
		c.Box.pending = append(c.Box.pending, item{receipt: r})
		c.Box.mu.Unlock()
		return
	}
	x, ok := m.(*wire.Exec)
	if !ok || len(x.Tasks) == 1 || !isLarge(x) {
		c.Box.pushClient(c.Job, c.Client, m)
		return
	}
	for i := range x.Tasks {
		one := &wire.Exec{Lease: x.Lease, Tasks: x.Tasks[i : i+1]}
		c.Box.Push(&internode.ToClients{Job: c.Job, Items: []internode.ClientMsgs{{Client: c.Client, Msgs: []wire.Msg{one}}}})
	}
}

// isLarge tells whether tasks with their arguments might be too much for a payload.
func isLarge(x *wire.Exec) bool {
	bytes := int64(0)
	for i := range x.Tasks {
		bytes += wire.CostOfSpec(x.Tasks[i].Spec)
		for k := range x.Tasks[i].Args {
			bytes += wire.CostOfValue(&x.Tasks[i].Args[k].Result.Value)
		}
	}
	return bytes > internode.MaxPayload/2
}

// Flush is outlet.Outlet's.
func (c *Client) Flush() { c.Box.Flush() }

// Close is outlet.Outlet's. The client's connection is its own node's to end.
func (c *Client) Close() {}
