// Package credentials is what a node proves with that it is of its cluster: its key, its certificate and the authority's certificates that it trusts.
// Dir keeps them on disk, Live makes TLS configurations of them and replaces them while connections are made.
//
// # Who owns what
//
// The file credentials.pem of the node's directory has all three, so that no kill of the process leaves a key beside another key's certificate. The
// file credentials.key has the key that the node is about to have certified. It is on disk before the authority is asked, and goes when the
// certificate is: if the answer is lost, the node asks again for the same key, and a token for one use is not lost with it.
//
// Live owns the credentials in use, the list of revocations and the connections that are cut when one of the two says so. It is safe for concurrent
// use.
//
// # What is checked
//
// Both sides of a connection speak TLS 1.3, and each checks the other's certificate: signed by a root that it trusts, valid now, of the same cluster,
// of a role that may do what the connection is for, not revoked, and, for who dials, of the node that was dialed. Nothing is resumed: every
// connection is checked anew. A connection lives on when the certificate expires that it was made with. It is cut when that certificate is revoked,
// or when its root is trusted no more.
//
// A trust bundle counts if a root has signed it that the node trusts (Live.Bundle).
//
// # Clocks
//
// Certificates are checked by this machine's wall clock, but never as of before this node's own certificate was issued. So a clock that is set back
// revives nothing that expired before that, and shuts nobody out. A clock that is set ahead refuses all others until it is set right, or this node's
// certificate is renewed; it leaves nothing behind.
//
// # What blocks, and errors
//
// Dir waits for the disk; nothing else blocks. The callbacks of Track run on the goroutine of whoever calls Use or Revoke. Errors are those of
// package trust, and fs.ErrNotExist where a node has no credentials yet.
package credentials
