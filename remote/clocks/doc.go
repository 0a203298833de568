// Package clocks estimates how far the clocks of other nodes are ahead of this node's, so that a time from another node can be read by this one's clock.
//
// # The estimate
//
// A node asks another one what its clock says: when they meet, and now and then while times of the other are about to come. So nodes that have nothing to do
// with one another cost nothing, however many there are. Such a round trip gives a difference that is wrong by half the round trip at most, and
// later by what the clocks have run apart since. Of the last of them the one counts that is wrong by the least now, as in NTP. A round trip that contradicts it
// shows that a clock has moved, for example since a machine was suspended: what was measured before is dropped. Until the first answer, the time at
// which the other node asked stands for it, which is wrong by the way here.
//
// # Who owns what
//
// A Core owns the samples of all nodes that this one talks with. They are measured again after a restart.
//
// # What blocks
//
// Nothing: the core is pure. Its shell, in internal/node, puts the times on messages and ticks.
//
// # Errors
//
// None. Times that make no sense are dropped.
package clocks
