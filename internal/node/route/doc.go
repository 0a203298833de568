// Package route says whom a client's message is for, which objects of other jobs it carries, and which attempts it ends.
//
// It owns no state and does not block: these are functions of a message and of who sends it. internal/node delivers, and refuses what
// is for nobody here: a kind that no client sends with ErrProtocol of package errs, what belongs to another home with ErrNotFound (package home).
package route
