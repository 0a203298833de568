// Package order gives every task of a graph a static priority: the place it would have if one
// worker ran them all, one after another, holding as few results as it can. A scheduler breaks
// ties with it among the tasks that are ready.
//
// The algorithm is that of dask.order, of the Dask project (BSD 3-clause), as of release 2026.8.0;
// the words and the code are ours. It goes in phases, a file each:
//
//	index.go      tasks are numbered by name, edges kept both ways
//	trim.go       data within tasks and lists of results are set aside: they are not run
//	weigh.go      how much lies below each task; a cycle is found here
//	reach.go      how many roots lie below each task, which leaves lie above each root
//	span.go       the sets of those
//	rank.go       what is compared when one of several tasks is to be picked
//	target.go     which leaf to finish next
//	tally.go      how many roots each leaf lacks yet
//	walk.go       the path to that leaf, and what it takes to walk it
//	runnable.go   what has become ready beside the path: run now, or remembered
//	ahead.go      what is remembered
//
// A root is a task without dependencies, a leaf one that nobody depends on.
//
// # Sameness
//
// Where dask goes through a set, in no order that it would promise, this package goes by name.
// So the result depends on names, kinds and edges alone, not on the numbers that the tasks
// have, as long as no two names are equal; and it is one of those that dask may give. The
// recordings in testdata hold the package to it, priority by priority. Of says where it is not.
//
// # Costs
//
// About linear in tasks and edges: a microsecond or two and 200 to 500 bytes a task, counting all
// that is ever allocated. What is not linear is the sets of roots and leaves that tasks reach.
// They are kept as runs of neighbours, and forgotten when they have been used: one run or a few for
// trees, shuffles, sums so far and products, one a row for neighbourhoods in the plane (some five
// microseconds and 800 bytes a task), as many as there are roots for tasks that depend on many
// others at random. When those take too much memory they are kept roughly only. No recursion goes
// deeper than the logarithm of the number of tasks.
//
// # State, blocking, errors
//
// Of is a pure function: it keeps nothing, blocks on nothing and may be called from many
// goroutines, on different graphs. It gives errs.ErrInvalid for a cycle, which it names, for a
// dependency that is no task of the graph, for a result from outside with dependencies, and for
// a graph beyond MaxTasks or MaxEdges.
package order
