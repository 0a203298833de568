// Package authority is a cluster's own certificate authority, as each of its control-plane servers serves it: it issues certificates, makes and
// redeems join tokens, and revokes.
//
// # Who owns what
//
// An Authority owns no state of the cluster: every row lies in the Tables, which all control-plane servers share, and changes by compare-and-set. So
// any server can serve any request, and the loss of one, the first too, stops nobody. The authority's private key lies there encrypted, with a key
// derived from the cluster's Secret. The secret lies in the directories of the control-plane servers and nowhere else: who reads the tables, or a
// backup of them, cannot sign, and who has one server's directory cannot without the tables. The plain key exists in memory while a certificate is
// signed.
//
// A change of whom nodes trust is told to them by Publish, as the trust bundle: one row, which the authority signs. A server keeps a copy of the authority's row
// in its directory (Keep), by which it certifies itself when the tables are away (FromCopy).
//
// # Clocks
//
// Tokens and certificates expire by the wall clock of the server that is asked, since they outlive reboots. That clock may be set. A token that was
// seen to have expired is marked so in its row, and no step backwards revives it; Sweep, called every minute, sees it. Besides, a server lets no
// token live longer than its lifetime by the steady clock, from when the server first saw it. A step forwards ends tokens early, and the next one is
// made by the same clock: nobody is locked out. A server whose clock is more than trust.Tolerance before a token was made, or before the authority
// itself was, refuses and names the clock.
//
// # What blocks
//
// All calls with a context wait for the tables, until it ends.
//
// # Errors
//
// Those of package trust. ErrSecret: the secret of this server's directory does not fit the authority. ErrNone: the cluster has no authority yet.
// Errors of the tables are passed on.
package authority
