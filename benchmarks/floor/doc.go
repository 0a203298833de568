// Package floor measures what this machine can do without Mobula: the numbers that Mobula's own are divided by. Each
// function does one bare thing, in plain Go, with nothing between it and the kernel, and returns
// its samples, one a repetition; Quantile reads them. Nothing is averaged and nothing is thrown away but
// the warm-up that a function names.
//
//	PingPong    round trip of a message between two processes over a Unix socket, seconds
//	Peer        the same by TLS 1.3 over a network, and a stream of bytes from another process' memory to this one's, GiB/s
//	Memcpy      copying memory, GiB/s of bytes copied
//	FirstTouch  writing fresh shared memory through mmap, GiB/s
//	DiskWrite   writing files, GiB/s; DiskRead reading them, cold or warm
//	Sort        external sort of 100-byte records, seconds by phase
//	Sum         adding up float64, GiB/s
//
// The functions run the caller's goroutine and as many more as they are told; they block until they are
// done or ctx ends, look at ctx between repetitions and chunks, and own nothing afterwards: files they
// made are removed. A program that calls PingPong or StartPeer calls Child first in main, as the other process is
// the program itself, started again. A Peer is ended by Close. Errors name the parameter or the file.
package floor
