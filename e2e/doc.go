// Package e2e holds the tests that need the whole runtime: a real node, real worker
// processes, real signals. There is nothing in it but tests.
package e2e
