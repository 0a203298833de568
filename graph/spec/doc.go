// Package spec is Dask's task-graph specification in Go, with two of the four schedulers that run it:
//
//	g := spec.New()
//	x := g.Data(spec.K("x"), 1.5)                      // a value
//	y := g.Task(spec.K("y"), Scale, x, 2)              // a call; an argument that is a Key stands for that node's value
//	z := g.Task(spec.K("z"), Sum, []any{x, y, 3})      // lists and maps of arguments nest
//	g.List(spec.K("all"), x, y, z)
//	g.Alias(spec.K("last"), z)
//	last, err := spec.Get[float64](ctx, spec.Threads(8), g, spec.K("last"))
//
// An Executor runs a graph. All executors give the same results, since all step the same state machine,
// graph.Core:
//
//	Sync()                  one task after another, in the calling goroutine, in the static order (graph/order)
//	Threads(n)              goroutines of this process
//	mobula.Processes(n)     worker processes, scheduled from here
//	mobula.Distributed()    the job's workers, scheduled by the node: the graph is shipped once
//
// The last two are in package mobula because they need its codecs and its table of registered functions; this package
// needs no cluster, and is all that a program of one process imports.
//
// # Types
//
// Graphs are data, so arguments are checked when Get checks the graph, not when the program is compiled: a task's result must be
// assignable to the parameters that take it; a literal fits a parameter if the conversion loses nothing. Get's type parameter is the
// type of what is wanted. If a graph has a fault, nothing of it runs.
//
// In this process values are passed as they are: a task must not change what it is given. To other processes they travel like the
// values of any task (package mobula). There a value for a parameter of interface type has the result type of the function that gave
// it; a literal has the type of its encoding, an int64 for an int.
//
// # What is run
//
// Only what the wanted keys need. Aliases, data and lists are not tasks: they become part of the arguments of the tasks that take
// them. So a list of n keys that m tasks take makes n times m dependencies; if both are large, make the list a task.
//
// A result is dropped when the last task that takes it has ended, unless it is wanted.
//
// # Errors
//
// Get says which there are. The first failure ends a run: it cancels the context of running tasks and waits for them, so
// that no goroutine is left.
//
// # Who owns what, what blocks
//
// A Graph belongs to one goroutine until it is complete; a Plan does not change. A run owns its results and the goroutines that it
// started. Get blocks until the run has ended; nothing else blocks.
package spec
