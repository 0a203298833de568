// Package gather decides when a question that was put to several nodes is answered: when each of them has answered, is dead, or has said nothing for too
// long. Who did not answer is named, with the reason.
//
// # Who owns what
//
// A Core belongs to one question, and to the goroutine that asks it. It owns the parts of answers that have come. It does not outlive its question: nothing
// is rebuilt.
//
// # What blocks
//
// Nothing: the core is pure. Its shell, in internal/node, sends the questions and waits.
//
// # Errors
//
// Those of the nodes that did not answer: ErrDeadline, ErrInvalid for an answer that is too large, ErrProtocol for one with a gap, and whatever
// ended a node's life.
package gather
