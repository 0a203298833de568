// Package cluster chooses nodes for work: which node of a cluster should take a demand, by what this one knows of the others.
//
// Core stands between the owners of a node's jobs and the schedulers of all nodes (package sched), which each decide who gets their own node's next lease. An
// owner says how many leases of a class it wants; the core splits that over nodes, and leases come back from each. The policies are pure functions, each in a
// file of its own. Its shell is in internal/node.
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
// Shape is what all tasks of one class ask of a node; a Demand is a shape with the bytes of the arguments by node. It is placed on a node, waits (some node could
// run it, none can now), or is infeasible (no node can, with the reason).
//
// A node is able to run a shape if it takes new work, its labels are as selected and it has the resources in all; one without CPUs takes only what names it, or asks for
// what else it was given. It is free for the shape if it is
// able, has them free now, and nothing of that shape waits there.
//
// # Policies
//
//	hybrid.go      the default: stay while half is free, else go to one of the least utilised
//	spread.go      one node after the other
//	affinity.go    one node, or that one first
//	labels.go      only nodes with these labels, or those first
//	locality.go    where the arguments' bytes are, each node by its share
//	hot.go         not where memory is short, while another node is free; hot_leases.go takes leases back from there
//	spillback.go   what was placed on a node that turns out to be busy goes to another
//	infeasible.go  why no node can run a shape
//
// They are Ray's, with its defaults (config.go); where one differs its file says so. place.go joins them, and the core places every lease by that. Of equal nodes
// the one with the lowest id is chosen. With TopK 1 and TopKFraction 0 the same view and demand give the same nodes; else they are drawn from the best, from the
// source that is given.
//
// # Core
//
// Wants are split (want.go). Each lease that is wanted is placed on a node that is free by its last report; what the core has asked of a node since, and has
// been granted, is off what that report has (node.go). For the rest no node is free: it waits at this node if that is able, else at all that are, by their
// size. A report, a lease that ends or a node that comes may make room, and then what waits is placed there. What was placed on a node that turns out to
// be busy is taken back after Patience, once its report says so (spillback.go).
//
// A lease is used as long as its owner has tasks for it. Those on a node that turns hot are asked back, at most once a second and no more than other nodes have room
// for (hot_leases.go), and the node is told that nothing is wanted there, so that it grants none in their place.
//
// A scheduler is told a number when it changes from or to nothing, doubles or halves (ask.go). One that has granted all it was asked for goes on by itself while
// tasks wait that no node has room for, as it does for an owner. With the owner's Want of zero, whatever is asked of any node is taken back, and a lease of
// another node that comes after that is returned.
//
// Tasks that are to be spread and are wanted while all nodes have room for them run on every node, as long as each takes longer than the leases take to come: no
// lease takes the place of one that was placed on a slower node. A node that has granted what was placed on it is told zero, what it grants beyond goes back, and
// the owner says which leases it has heard of (Heard), so that those that cross with its Want are not granted twice. It is told where leases are yet to come
// (awaited.go): it keeps the share of short tasks for these nodes, for a while.
//
// A node whose scheduler says Infeasible is left out for the class until it says Feasible, reports other resources or gets another scheduler; one that could start no
// worker, for ten seconds. An owner is told Infeasible when no node is able, after WaitForNodes, and Feasible when one is again (refuse.go). A node that is named and
// was never heard of may have joined just now: it is waited for as one that has not reported yet.
//
// Everything about a lease or a worker goes to the node that its id begins with (route.go). Several schedulers may ask an owner what it holds, each
// with an epoch that nobody else in the cluster has: the core sends the answer with it to who asked, as far as it concerns that one. A core that was built since does not
// know who did: it sends it to all, and all others ignore it (resync.go).
//
// A Reporter makes a node's own reports, and says when one is due; an Audience says whom it is told (decision 0028).
//
// While a node is alone all that owners and their scheduler say passes as it is, and nothing is added.
//
// # Jobs on other nodes
//
// OpenJob goes before the first message about a job to another node. CloseJob follows when the job had neither lease, want nor object there for CloseAfter. The other node
// drops what it has then, which can only be what was under way, and answers JobClosed; until then nothing is sent there and nothing heard. So a lease that
// crossed with CloseJob is held by nobody. A job that asks one other node for leases, for what its own cannot run, is opened on a second one too, which stands by (standby.go)
// and is told of each class, so that it has what the tasks run.
// An owner that has objects on a node, or is about to (Holds), hears when its job is open there (Opened), also after a CloseJob that was under way.
//
// # What rebuilds it
//
// All that it has is elsewhere too. Which nodes live, the membership says (Restored.Nodes); their resources are in their last reports, which its shell keeps, and no other node is asked for
// anything before. What an owner holds and wants it answers to Resync. What the core before had asked of which node nobody knows: where a job has a
// lease or an object, the scheduler is told what is wanted of each class anew, and on all other nodes the job is closed. Before the owner answers nothing is
// closed but what it gives up itself. What an owner names on a node whose life ended before it answered, or where it had given up the job, is over, though the
// node may live again. Of a class that the owner does not want any more a number may stand: when a lease comes of it, its scheduler is told so.
//
// A scheduler that is rebuilt asks the owners, through the cores; an owner that is rebuilt asks the schedulers (sched.OwnerRestarted). When a node's life ends its
// leases do, each with Revoked, and nothing else.
//
// # What blocks
//
// Nothing. A decision looks at each node of the view once, and holds nothing. What waits in a core waits for a report, a lease that ends or a timer, and ends with
// its owner's Want of zero or its job.
//
// # Errors
//
// Shape.Validate gives CodeInvalid. The Infeasible of a core is CodeUnschedulable: it names the shape, and what each of the nodes has not,
// unless all that the reports have as able refuse: then it is what one of them said. A lease whose node is gone ends with CodeWorkerCrashed. Events that name
// an unknown lease, class or job are stale, not wrong, and are ignored.
package cluster
