package memberlist

import (
	"mobula/actors"
	"mobula/internal/node/gossip"
	"mobula/remote/membership/shell"
)

func init() {
	gossip.Register(func(parent actors.Parent, c gossip.Config) (gossip.Gossip, error) {
		return shell.Start(parent, shell.Config{
			Core: c.Core, Cluster: c.Cluster, Bind: c.Bind, Advertise: c.Advertise, Keys: c.Keys, Dialer: c.Dialer, Follow: c.Follow, Accuse: c.Accuse, Facts: c.Facts, Logger: c.Logger,
		})
	})
}
