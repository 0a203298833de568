// Command sim runs one job or several on many nodes in virtual time, with the schedulers, the cores that choose nodes and those of the control plane as they are in
// production. Only what is around them is a model: the owners, the worker pools, the network, memberlist and NATS.
//
//	go run ./benchmarks/sim -nodes 10,100,1000,10000
//
// # What is a model
//
// An owner has all its tasks at once, and follows the rules of package raylet/owner: it says what it wants when that changes from or to nothing, doubles or halves;
// over a lease it pushes one task at a time, since the tasks are longer than what is pushed ahead (decision 0004). Of its first tasks it gives a lease one whose
// arguments are on the lease's node, and has others wait for such a lease for as long as a move would take (near). It takes no time itself. A task that
// runs where its arguments are not waits for them first.
//
// A message between nodes takes Config.Latency, one within a node nothing. The first lease of a job on a node waits for a worker to start. Whom a node tells what
// it has free, and when, cluster.Audience and cluster.Reporter say, as in production; so the messages and bytes of reports are counted, not assumed.
//
// Who of the nodes is dead, package remote/membership/model says by gossip: memberlist, rule by rule; and package gcs/model by the control plane: its cores, and NATS as
// rules and costs. Tests hold both against 16 and 32 real nodes. No task waits for the control plane, so the two do not meet the job.
//
// # What is measured
//
// The makespan, beside two others: that of a scheduler which knows every slot at once, has no delay, and does not know either how long a task takes (ideal); and
// the work divided by the slots, or the longest task, which is less than any schedule takes (bound). Decisions a second are real time: tasks given out, by
// the whole simulation; leases placed, by the cores that choose nodes alone. And how long it takes until all know that a tenth of the nodes have ended at once, by the
// gossip (at most a hundred of them) and by the control plane, with no word from their machines; and what each costs.
//
// # Errors
//
// It ends with a message if tasks are left and nothing is under way, if a life is ended that is not over, or if one that is over is not ended.
package main
