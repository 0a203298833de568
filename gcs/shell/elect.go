package shell

import (
	_ "unsafe" // for go:linkname

	"github.com/nats-io/nats-server/v2/server"
)

// metaGroup is NATS' raft group that knows all streams.
const metaGroup = "_meta_"

// raftNode gives a server's part in a raft group; nil: it has none. NATS exports what it gives, and not how to get it.
//
//go:linkname raftNode github.com/nats-io/nats-server/v2/server.(*Server).lookupRaftNode
func raftNode(s *server.Server, group string) server.RaftNode

// electAlone has a server that is the only member of the meta group lead it at once. NATS sees that such a group needs no election whenever the group has
// applied something, as it does when the server comes back. A new one has nothing to apply, and would wait for an election's time-out of 4 to 9 s.
func (s *Server) electAlone() {
	if n := raftNode(s.ns, metaGroup); n != nil && n.ClusterSize() == 1 {
		n.Applied(0)
	}
}
