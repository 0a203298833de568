// Package gossip is how a node is of its cluster's membership: what it starts, whichever way it hears of the others.
//
// A node that runs work or carries tables gossips, by the driver internal/node/gossip/memberlist, which cmd/mobula imports. A program's own node, which only
// submits work, does not: it believes what the control plane's table and its connections say (package remote/membership has one rule for all of these), and
// the others hear of it by the table. So such a program does not link the driver.
//
// # Who owns what, what blocks, errors
//
// Nothing is kept here but the driver. What Start gives owns the core; Join and Leave wait until their context ends. errs.ErrInvalid: the node is to gossip,
// and the program has no driver.
package gossip
