// Package cluster chooses nodes for work: which node of a cluster should take a demand, by what this one knows of the others.
//
// It stands above a node's scheduler (package sched), which decides who of the node's own gets the next lease, and below whoever asks other nodes.
// Nobody drives it yet: it is the vocabulary and the policies, each a pure function in a file of its own. A core with a Step comes with the
// messages between nodes, and will call Place for what its owners want and Spillback for what other nodes ask of it.
//
// # Why it is part of the raylet
//
// There is no scheduler of the whole cluster. Each raylet decides alone, local first, with a view of its own (View), so this is one more part of a
// raylet, in the layer of cores, and reads resources as its scheduler does (sched.Asked). The control plane, which will place named actors, may
// import this layer too.
//
// # Words
//
// A Node is what another node's last report said: resources, labels, whether it drains, what waits there. A View is all of them and who looks. A
// Shape is what all tasks of one class ask of a node; a Demand is a shape with the bytes of a task's arguments by node. A Decision is one of four: Here,
// There (another node), Wait (some node could run it, none can now) and Infeasible (no node can, with the reason).
//
// A node is able to run a shape if it takes new work, its labels are as selected and it has the resources in all. It is free for the shape if it is
// able, has them free now, and nothing of that shape waits there.
//
// # Policies
//
//	hybrid.go      the default: stay while half is free, else go to one of the least utilised
//	spread.go      one node after the other
//	affinity.go    one node, or that one first
//	labels.go      only nodes with these labels, or those first
//	locality.go    where most of the arguments' bytes are
//	hot.go         not where memory is short, while another node is free
//	spillback.go   a node that cannot take what it was sent names another, a bounded number of times
//	infeasible.go  what no node can ever run, by shape
//
// They are Ray's, with its defaults (config.go); where one differs its file says so. Place joins them. Of equal nodes the one with the lowest id is
// chosen. With TopK 1 and TopKFraction 0 the same view and demand give the same decision; else one of the best is drawn, from the source that is given.
//
// # What blocks
//
// Nothing. A decision looks at each node of the view once, and holds nothing.
//
// # Errors
//
// Shape.Validate gives CodeInvalid. Decision.Why is CodeUnschedulable: it names the shape, and what each of the nodes has not.
package cluster
