// Package loopback has the nodes of a test that share a process be hosts of their own on the loopback interface, and cuts them off from one another. Each host
// has an address of 127.0.0.0/8, at which its node listens and from which it connects; the kernel drops what comes to the sockets of a host from one that it is cut
// off from, as a broken switch would: nobody is told, and TCP sends again when it is mended.
//
// # Who owns what
//
// A Host owns the rule of what its sockets take. The sockets are the node's; a socket belongs to the host by its local address.
//
// # What blocks
//
// Nothing. Refuse takes system calls in the number of the process' descriptors.
//
// # Errors
//
// Those of the system, wrapped.
package loopback
