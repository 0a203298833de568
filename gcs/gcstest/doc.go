// Package gcstest starts the servers that the nodes of a cluster share, for tests of several packages: a server in the test's process, or a set of three, as an
// operator has them, each a process of its own that can be killed.
//
// A server ends with its test. One that cannot be started fails the test; starting waits as long as testkit.Patience says.
package gcstest
