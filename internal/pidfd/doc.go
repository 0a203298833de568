// Package pidfd tells whether a process is gone, in the same way for the whole project.
//
// A process is gone when its pidfd says so, or when the kernel has no process with its number (ESRCH). Other errors do not mean
// that it is gone: no descriptor left (EMFILE), no memory, or a kernel or sandbox without pidfd_open are problems of this
// process; then it checks the number with signal 0. A zombie, which nobody has waited for yet, is gone: it no longer reads or
// writes.
//
// # What blocks
//
// Await blocks, without a goroutine or a thread of its own, until its time is over. Until blocks until the process is gone. The others do
// not block.
package pidfd
