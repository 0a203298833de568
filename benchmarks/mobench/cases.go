package main

// noOther says why get-large needs worker processes.
var noOther = map[string]string{embedded: "there is no other process: tasks run in the driver's"}

// cases are all of them, in the order in which they run.
var cases = []benchCase{
	{name: "task-sync", what: "one task after another, p50 of a round trip", run: taskSync},
	{name: "task-async", what: "100,000 tasks at once", run: taskAsync},
	{name: "actor-sync", what: "one call of an actor after another, p50", run: actorSync},
	{name: "actor-async", what: "100,000 calls of one actor at once", run: actorAsync},
	{name: "actor-create", what: "2,000 actors in a shared worker, until all are constructed", run: actorCreate},
	{name: "cancel", what: "a running task cancelled, until its context ends, p50", run: cancelCase},
	{name: "put-small", what: "puts of 1 KiB, references kept", run: putSmall},
	{name: "get-small", what: "gets of one's own puts of 1 KiB, one by one", run: getSmall},
	{name: "put-large", what: "a put of 1 GiB, memory used before; first: after the start", run: putLarge},
	{name: "get-large", what: "the first view of 1 GiB in another process", run: getLargeCase, skip: noOther},
	{name: "wait-1k", what: "a wait for 1,000 references that are ready", run: wait1k},
	{name: "chain-1000", what: "1,000 tasks, each of which needs the one before", run: chain},
	{name: "tree-10k", what: "5,000 leaves added up in pairs, 9,999 tasks", run: tree},
	{name: "submit-100k", what: "100,000 calls, until the last has returned", run: submit100k},
	{name: "queue-1m", what: "1,000,000 tasks, no slot free until all are submitted, until all are done", run: queue1m},
	{name: "args-10k", what: "a task of 10,000 arguments", run: args10k},
	{name: "returns-3k", what: "a task of 3,000 results", run: returns3k},
	{name: "get-10k", what: "10,000 objects of 128 KiB in the store, one call", run: get10k},
	{name: "broadcast", what: "1 GiB summed by 100 tasks", run: broadcast},
	{name: "spill", what: "4 GiB of 64 MiB arrays through a store of 1 GiB, and back", run: spill},
	{name: "sort", what: "2 GiB of records sorted in a store of 512 MiB", run: sortCase},
	{name: "idle", what: "memory of all processes 10 s after the first task", run: idle},
	{name: "idle-cpu", what: "processor time of all processes in the 30 s after that, in percent of a core", run: idleCPU},
	{name: "cold-start", what: "process start to first result", run: coldStart},
	{name: "trace-overhead", what: "tracing 1 % against none, 20 pairs", run: traceOverhead},
	{name: "list-overhead", what: "listing in a loop with 1,000,000 tasks waiting", run: listOverhead},

	{name: "remote-task-sync", what: "one task after another on another node, p50 of a round trip", run: remoteTaskSync, over: true},
	{name: "remote-task-async", what: "100,000 tasks at once on another node", run: remoteTaskAsync, over: true},
	{name: "remote-actor-sync", what: "one call after another of an actor on another node, p50", run: remoteActorSync, over: true},
	{name: "remote-leases", what: "leases that another node gives for 1,000 tasks at once", run: remoteLeases, over: true},
	{name: "remote-chain-1000", what: "1,000 tasks on two nodes in turn, each of which needs the one before", run: remoteChain, over: true},
	{name: "transfer", what: "1 GiB from another node, into memory used before; first: after the start", run: transfer, over: true},
	{name: "transfer-cut", what: "1 GiB from another node, whose link is down for a while at half: bytes sent for each of the object's", run: transferCut, over: true},
	{name: "transfer-killed", what: "1 GiB from one of two other nodes, killed at half: bytes received for each of the object's", run: transferKilled, over: true},
	{name: "nodes-broadcast", what: "256 MiB to six nodes at once", run: nodesBroadcast, over: true},
}
