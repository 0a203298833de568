// Package memstat reads how much memory there is and how much is in use: by the machine, by this process' cgroup (v2 or v1) and those
// above it, and by a process.
//
// Available is for code that is about to take memory; a Sampler is for code that watches it. Both read /proc and /sys/fs/cgroup below a
// root directory, os.DirFS("/") outside of tests. Page cache that the kernel would drop counts as free.
//
// A Sampler belongs to one goroutine and keeps what it last read of each process; Available keeps nothing. Both block for reads of the
// kernel's files: smaps of a large process takes tens of milliseconds, so the longer it takes, the less often it is read. An error
// says that a file cannot be read or makes no sense.
package memstat
