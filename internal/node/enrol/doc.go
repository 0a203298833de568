// Package enrol is how a node gets into its cluster, and stays in it: it founds the cluster, joins with a token, or comes back with the credentials that it has,
// and renews these.
//
// # Who owns what
//
// A Member owns these files of the node's directory: credentials.pem (package credentials); cluster.secret and authority.json on control-plane servers (package
// authority); cluster.json: where the control-plane servers are, and the keys of the gossip, as last heard; bundle.json: the trust bundle that it follows. Credentials are written last: a node that has none yet
// joins or founds again, and gets the same home.
//
// # What blocks
//
// Join, Found, Renew, Certify and Recertify wait for the disk and for a control-plane server, until their context ends.
//
// # Errors
//
// Those of packages join, trust and authority. errs.ErrInvalid: the node was told to join a cluster that its directory is not of, or without a token;
// errs.ErrNoNode: no node answers at the addresses given, with what each of them answered.
package enrol
