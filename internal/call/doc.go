// Package call is the engine of the public API on one process' side: it does the work of package mobula's generic handles, once their
// types are known. A function's handle has a Function. A Call on the caller's stack builds the task's spec, which the client sends;
// the worker's side decodes arguments with Input and encodes results with Result. A reference has a Cell.
//
// # Who owns what
//
// A Cell owns one handle of the client, and gives it back when the last copy of the reference is garbage or was released. A
// Function owns its interned options, and what it has learned of its results' size. The codec of each type (types), the functions that
// graphs may call, and the buffers of running tasks that are still open (openResults) are tables of the process: they only
// cache what follows from the program, or are emptied when the task ends.
//
// # What blocks
//
// Get, Wait, Next, Ready, Stop and requests wait for the node, until their context ends. Submit waits for credit, for the room of a large
// argument, and, with WaitForRoom, for the actor's. Nothing else does.
//
// # Errors
//
// A Call keeps its error, which becomes the error of its result's Cell. All are of package errs. Errors from the node go through
// failure, so that the references in an error live as long as the error does.
package call
