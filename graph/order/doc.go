// Package order gives every task of a graph a static priority: its place if one worker ran all tasks one after
// another and held as few results as possible. A scheduler uses it to choose among ready tasks.
//
// The algorithm is that of dask.order, of the Dask project (BSD 3-clause), as of release 2026.8.0;
// the words and the code are ours. It has phases, each in a file:
//
//	index.go      tasks are numbered by name, edges kept both ways
//	trim.go       data within tasks and lists of results are set aside: they do not run
//	weigh.go      how much lies below each task; a cycle is found here
//	reach.go      how many roots lie below each task, which leaves lie above each root
//	span.go       the sets of those
//	rank.go       how tasks are compared when one of several is picked
//	target.go     which leaf to finish next
//	tally.go      how many roots each leaf still lacks
//	walk.go       the path to that leaf, and what else the path needs
//	runnable.go   tasks that became ready beside the path: run now, or remembered
//	ways.go       the remembered paths
//
// A root is a task without dependencies, a leaf one that nobody depends on.
//
// # Determinism
//
// Where dask iterates over a set, in an order that it does not promise, this package goes by name. So the result
// depends only on names, kinds and edges, not on the numbers of the tasks, as long as no two names are equal; and
// it is one of the orders that dask may give. The recordings in testdata check that, priority by priority. Of says
// where it differs.
//
// # Costs
//
// The cost is about linear in tasks and edges: a microsecond or two and 200 to 500 bytes per task, counting
// everything that is ever allocated. Only the sets of roots and leaves that tasks reach are not linear. They are
// kept as runs of neighbours, and dropped after use: one run or a few for trees, shuffles, cumulative sums and
// products; one per row for neighbourhoods in the plane (some five microseconds and 800 bytes per task); as many
// as there are roots for tasks that depend on many others at random. If they take too much memory they are kept
// only approximately. No recursion goes deeper than the logarithm of the number of tasks.
//
// # State, blocking, errors
//
// Of is a pure function: it keeps nothing, blocks on nothing and may be called from many goroutines, on different
// graphs. It gives errs.ErrInvalid for a cycle, which it names, for a dependency that is not a task of the graph,
// for a result from outside with dependencies, and for a graph beyond MaxTasks or MaxEdges.
package order
