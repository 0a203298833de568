package client

import "mobula/wire"

// Welcome is what the node answered when this client joined. It must not be changed.
func (c *Client) Welcome() *wire.Welcome { return c.cfg.Welcome }
