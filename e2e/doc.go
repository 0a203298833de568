// Package e2e holds the tests that need the whole runtime: a real node, real worker
// processes, real signals. There is nothing in it but tests.
//
// A test owns the node and driver processes it starts, by their ids, and ends them when it
// ends. Every wait has the deadline of its test (limit), and says what it waited for.
package e2e
