// Package lend has the goroutine that waits for an answer read it, in place of the goroutine that reads the connection.
//
// As a rule each connection has a goroutine that reads. Where a single goroutine sends, waits for the answer, and sends again, the reader is woken only
// to wake that goroutine. So once that has gone on for a while the reader lends its place: from then on whoever waits reads the connection, and between
// two waits nobody does (docs/decisions/0006).
//
// A Place is the role of a connection's reader. What is read, and how, is the connection's own: one goroutine at a time has the role, and whatever only
// the role's holder uses needs no lock. A Lender knows which place is lent, one at a time, and who waits. Lend returns when the place is the reader's
// again: at the latest some milliseconds after nobody used it. Read waits as long as its borrower reads. There are no errors: what a borrower cannot
// handle it leaves to the reader.
package lend
