// Package gcstest starts the servers that nodes of a cluster share, for tests.
package gcstest
