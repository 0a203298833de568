// Quickstart: functions, references, several results, a stream, an actor and errors in one page.
//
//	go run ./samples/quickstart
//
// Only references share data. Only Get waits. The sample shows that the caller can match a function's own error.
package main
