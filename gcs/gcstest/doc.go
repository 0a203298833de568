// Package gcstest starts the servers that the nodes of a cluster share, for tests of several packages.
//
// A server ends with its test. One that cannot be started fails the test; starting waits at most ten seconds.
package gcstest
