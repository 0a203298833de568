// Package model is memberlist as a pure function: who of many nodes gives up whom, and when, for simulations of thousands of nodes in virtual time.
//
// It follows memberlist's protocol, SWIM with the three extensions of Lifeguard, rule by rule: probes in a shuffled order, direct and through others; suspicion
// that ends the sooner the more nodes confirm it, and is refuted with a higher incarnation; nodes that are late themselves probe more slowly; gossip of bounded
// packets to a few nodes, each message a bounded number of times; exchanges of all state. A test holds its times of detection and of agreement against those of
// real nodes.
//
// Left out is what does not change these times much: the contents of nodes, packets lost one by one (a probe that is lost is made again by a stream),
// the exchanges of all state that package shell adds after a refutation, and the processor.
//
// # Who owns what
//
// A Gossip owns all nodes' beliefs, queues and timers. The same Config and the same calls give the same changes.
//
// # What blocks, and errors
//
// Nothing, and none.
package model
