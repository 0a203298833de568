// Package trust decides who belongs to a cluster, as rules without I/O: what a node's certificate says of it (Name), what a role may do (Allowed),
// who may join with a token (TokenRow), whose certificate counts no more (Revocations), and how the gossip's key is rotated (GossipRow). It also has
// the rows that lie in the control plane's tables, among them the trust bundle, which tells each node of all that (Bundle). The packages below it act:
//
//	authority     on a control-plane server: the cluster's authority, its tokens and revocations, over the tables
//	credentials   on every node: its key and certificate on disk, and the TLS configurations made of them
//	join          the exchange by which a node gets its certificate, and a new one before it expires
//
// # Why here
//
// The control plane (package gcs) asks what a role may write, and the transport between nodes (package remote) asks who is at the other end. Both are
// cores, neither may import the other's shell, and an authority inside one of them would be out of the other's reach. So trust lies below both,
// beside internal/home, which says who a node is: home and epoch come from there, and a certificate binds them to a key.
//
// # Who owns what
//
// Nothing is kept here. The rows are the control plane's; decision 0023 says who can read which, what the clocks of machines may do, and what the
// whole defends against.
//
// # What blocks, and errors
//
// Nothing blocks. A Refused wraps one of the sentinels of this package and is errs.ErrPermission; its text says what to do and never has a secret.
// errs.ErrInvalid for texts and rows that cannot be read.
package trust
