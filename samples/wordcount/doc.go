// Wordcount: the words of a source tree, the Go toolchain's own by default, counted by tasks
// and summed up in a tree of reductions.
//
//	go run ./samples/wordcount -top 20
//
// A task owns the counts it makes and passes them on by reference; the driver sees only the last
// sum, and waits for it. A file that cannot be read fails the job, by name.
package main
