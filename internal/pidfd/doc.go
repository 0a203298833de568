// Package pidfd tells whether a process is gone, in one way for the whole project.
//
// A process is gone when its pidfd says so, or when the kernel knows no process of its number (ESRCH). Nothing else says it: no
// descriptor left (EMFILE), no memory, a kernel or a sandbox that knows no pidfd_open are this process' own trouble, and then the
// number is asked for with a signal that is none. A zombie, which nobody has waited for yet, is gone: it reads and writes
// nothing any more.
//
// # What blocks
//
// Await does, without a goroutine or a thread of its own, until its time is over; Until does until the process is gone. The others do not.
package pidfd
