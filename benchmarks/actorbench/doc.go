// Actorbench measures messages between actors: on Mobula, on protoactor-go, and on what Go and the kernel have without either. A run is one row on one system; make
// bench-peers ARGS=actors runs all of them in turn, and makes the table.
//
// # Rows
//
// Each row does the same work on each system, with an int and with a struct of 100 bytes, and fails if a message has not arrived or an answer is wrong. It begins with a tenth
// of the work that is not measured. The floor of a row in one process is goroutines with a channel each, and of one in two processes a Unix socket.
//
// # Who owns what
//
// A row opens its actors and closes them. A process runs one row.
//
// # What blocks, which errors
//
// A row blocks until its work is done or its context ends, on protoactor-go and the floors until it is done. Whoever starts a run bounds it. Errors name what did not arrive.
package main
