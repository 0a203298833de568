// Quickstart: functions, references, several results, a stream, an actor and errors in one page.
//
//	go run ./samples/quickstart
//
// Nothing is shared but what goes through references. Only Get waits; the sample shows that
// a function's own error arrives as itself.
package main
