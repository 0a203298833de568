package shell

// Stats counts what the gossip has done since the start.
type Stats struct {
	Refused uint64 // packets, streams and messages that could not be read, or were not from this cluster
	Packets uint64 // sent
	Bytes   uint64 // of these
	Health  int    // memberlist's own: 0 is well, above it this node is late with what it should do
}

// Stats gives the counts.
func (m *Membership) Stats() Stats {
	return Stats{Refused: m.refused.Load(), Packets: m.net.packets.Load(), Bytes: m.net.sent.Load(), Health: m.list.GetHealthScore()}
}
