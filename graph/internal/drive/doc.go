// Package drive runs a graph to its end from one goroutine: the shell around graph.Core where the graph's only worker
// is whatever a Runner starts tasks on.
//
// # Who owns what
//
// Run owns the core and the line of tasks that are ready and not started. The Runner owns results, and what runs.
//
// # Order
//
// Of the tasks that are ready the first in the graph's order is started first; one that asks for resources which are
// taken is passed over until they are free. So with one task at a time tasks run in the graph's order.
//
// # What blocks, errors
//
// Run blocks in the Runner alone. It ends with the first wanted result that cannot be made (*Failure), with what
// the Runner's Wait gives, or with the cause of its context; what runs then is the Runner's to end.
package drive
