// Package sockets tells on which sockets this process listens, by what the kernel says: TCP, UDP and Unix sockets.
//
// It owns nothing and blocks for the file system /proc alone. Errors are those of reading it.
package sockets
