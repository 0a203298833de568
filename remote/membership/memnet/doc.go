// Package memnet is a network for memberlist in this process, for tests: packets and streams with a latency, losses and cuts.
//
// # Who owns what
//
// A Network owns its ends (Transport), what is under way, and which ends are cut from each other or stand still. Latencies and losses are drawn from a seed.
// In a bubble of testing/synctest its time is the bubble's.
//
// # What blocks, and errors
//
// A dial waits for the latency, or for its time-out if the other end is cut off. Nothing else blocks: packets that do not fit are lost, as with
// UDP. ErrUnreachable: a dial that nobody answers; ErrRefused: nobody listens there.
package memnet
