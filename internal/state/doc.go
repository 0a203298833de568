// Package state has the requests about a running node: their names, and the rows, pages and reports that answer
// them. The node's handlers, the command line and the dashboard share it.
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
// there are more, and the cursor for them: nothing is left out silently. The default limit is 100 rows, the highest 10,000 (as in
// Ray).
//
// Everything here is a plain value. Nothing blocks. Errors are errs.ErrInvalid.
package state
