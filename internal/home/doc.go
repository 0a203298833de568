// Package home is a node's place in its cluster: the home that the control plane gave its directory, the epoch of the
// present life, and the numbers of the jobs, clients, workers and leases that the home gives out.
//
// # Who owns what
//
// The control plane's register (package register) owns which home is whose, and the epochs: they grow by one with each life, by compare-and-set, and no
// clock has a part in them. A node that is its own control plane has no other register than its directory. The directory's file "home" owns the
// numbers. A block of them is reserved on the disk before the first is given out, and the next block before the last is
// half used, so that a number comes from memory, nobody is asked for it, and none is given out twice whenever the node is killed. What
// a graceful stop finds unused is given back.
//
// # What blocks
//
// Open and Close write to the disk; Next does when a block is used up before the next could be written.
//
// # Errors
//
// register.ErrCopied where the directory is a copy of another; errs.CodeInvalid for a file that is damaged and for a directory that cannot be
// written.
package home
