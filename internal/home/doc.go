// Package home is a node's place in its cluster: the home that the control plane gave its directory, the epoch of the
// present life, and the numbers of the jobs, clients, workers and leases that the home gives out.
//
// # Who owns what
//
// The control plane's register (package register) owns which home is whose, and the epochs: they grow by one with each life, by compare-and-set,
// independent of any clock. A node that is its own control plane has no register but its directory. The directory's file "home" owns the numbers. A
// block of them is reserved on disk before its first number is given out, and the next block before this one is half used. So a number comes from
// memory, without a question to anybody, and none is given out twice, even if the node is killed at any time. A graceful stop gives unused numbers
// back.
//
// # What blocks
//
// Open and Close write to the disk; Next does when a block is used up before the next could be written.
//
// # Errors
//
// register.ErrCopied if the directory is a copy of another; errs.CodeInvalid for a damaged file and for a directory that cannot be written.
package home
