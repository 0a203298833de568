// Package nodeport is where a node of a cluster listens for the other nodes: one TCP port for messages, objects and joins, which TLS tells apart by their ALPN.
//
// # Who owns what
//
// A Port owns its listener, and the protocols that are registered there. Who may be at the other end of a connection is decided by the node's
// credentials (internal/trust/credentials), in the handshake: nodes of the same cluster for messages and objects, anybody for joins. A connection is
// cut when its certificate counts no more.
//
// Between two nodes of one machine objects go in clear once both have proved who they are (decision 0035).
//
// # What blocks
//
// Serve until Close; dials and accepts as their contexts and transports say. Until Serve runs, connections wait in the port's queue.
//
// # Errors
//
// errs.ErrInvalid where the address cannot be had, with the address and what to do.
package nodeport
