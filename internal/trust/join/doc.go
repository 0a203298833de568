// Package join is the exchange by which a node gets its certificate: with a token when it joins, and with its certificate when that is to be renewed.
//
// # The exchange
//
// One question and one answer over one TLS connection, each a JSON object behind its length. The node that joins knows no server, so it first takes
// the server's chain from the handshake and looks for the authority that its token names; the handshake fails if it is not there, and nothing but
// that failure was sent. Then it sends the token, a certificate request for a key of its own, and what its directory knows of itself. The server
// redeems the token, connects to the node where that says others reach it and finds the key of the request there (Answer), begins the life in the register of homes, and signs a certificate for that home. The answer has the certificate, the roots to
// trust, and what a node of the cluster must know: keys of the membership, addresses of the control plane, and for a control-plane server the
// cluster's secret.
//
// Any question may be asked again, on a new connection or of another server: the register grants the same life to the same claim, and a token for
// one use is granted again for the same key.
//
// # Who owns what
//
// Nothing is kept here: the authority's tables have the tokens, the register the homes, the node's directory its key and certificate.
//
// # What blocks
//
// Ask, Renew and Serve wait for the other side, as long as their context lives and at most for Timeout.
//
// # Errors
//
// Those of package trust, on both sides; errs.ErrVersion with both versions; errs.ErrProtocol for what is no question or answer. What the server's
// own parts fail with stays there: a stranger is told no more than that the control plane cannot answer.
package join
