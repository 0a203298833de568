// Package drive runs a graph to its end from one goroutine. It is a shell around graph.Core whose only worker is a
// Runner.
//
// # Who owns what
//
// Run owns the core and the line of ready tasks that have not started. The Runner owns results and running tasks.
//
// # Order
//
// Ready tasks start in the graph's order; a task that asks for resources which are taken is skipped until they are
// free. So with one task at a time tasks run in the graph's order.
//
// # What blocks, errors
//
// Run blocks only in the Runner. It ends with the first wanted result that cannot be made (*Failure), with the
// error of the Runner's Wait, or with the cause of its context; the Runner then ends running tasks.
package drive
