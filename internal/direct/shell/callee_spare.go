package shell

import (
	"mobula/internal/direct"
	"mobula/internal/queue"
)

// This file is calls that may be used again, of which a program makes millions: nobody waits for such a call, so nobody has it when it has ended and the mailbox has heard
// that its answer was taken. Whatever lets somebody have it longer than the lock is held notes that it was shown, and then it is left to the garbage collector.

// ended is a call that may be used again when its answer is acknowledged.
type ended struct {
	call  *Call
	ackNo uint64
}

// comesBack tells whether a call that ends may be used again: its answer has just come by its link, and its Run has ended, else there would be an error.
func (k *Call) comesBack(o *direct.Outcome) bool {
	return k.Spare && !k.shown && k.of.from != nil && o.Err == nil
}

// forgotten is how many calls the mailbox does not know any more. Both locks are held.
func (l *link) forgotten() (n int) {
	for _, e := range l.ended.All() {
		if e.ackNo > l.acked {
			break
		}
		if e.call.in.Kept() { // what acknowledges was left out, since it has panicked: all are left to the garbage collector
			l.ended = queue.Queue[ended]{}
			return 0
		}
		n++
	}
	return n
}
