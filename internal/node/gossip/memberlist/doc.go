// Package memberlist has nodes gossip by hashicorp/memberlist: import it for that. A program that only submits work needs no part of it.
//
// It owns nothing and blocks nowhere by itself; errors are those of package remote/membership/shell.
package memberlist
