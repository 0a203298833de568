// Package call is the engine of the public API, one process' side: what the generic handles of package mobula do, once their types are
// known. A function's handle is a Function. Its call is built in a Call, on the caller's stack, from the context's task to the spec
// that the client sends; the worker's side of the same call decodes with Input and encodes with Result. A reference is a Cell.
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
// What is wrong with a call is kept in the Call, and becomes the error of its result's Cell. All are of package errs. One that came from
// the node goes through failure, so that the references in it live as long as the error does.
package call
