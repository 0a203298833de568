// Package state is what can be asked about a running node: the names of the requests, and
// the rows, pages and reports that answer them. The node's handlers, the command line and the
// dashboard share it.
//
// # Shapes
//
// A request's body and its reply are CBOR maps with the names of the json tags. Times are Unix
// nanoseconds, sizes bytes, resources in whole units ("CPU": 0.5). Ids are text as
// package ids prints them.
//
// # Lists
//
// A list is answered in pages. Tasks, actors, jobs and graphs come newest first, by when they were submitted or created, which does
// not change from page to page; the others are ordered by id, and Memory by size. A Page says how many rows match in all, whether
// there are more than it has, and with which cursor they are asked for: nothing is left out
// silently. The limit is 100 rows unless said, at most 10,000 (Ray's limits).
//
// Everything here is a plain value. Nothing blocks. Errors are errs.ErrInvalid.
package state
