// Package jobfile keeps on disk what a node must know of its jobs to go on with them in its next life: who the driver of each is and what its workers run
// (jobs/JOB.json), what the processes of each share (jobs/JOB), and, set aside with the reason, the jobs that could not come back (lost/JOB).
//
// # Who owns what
//
// A Dir owns these files of one node's directory. The logs of jobs lie beside them, in owner/JOB, and are package raylet/oplog's. It decides nothing: when a
// driver is noted or forgotten package jobs says.
//
// # What blocks
//
// Every call, for a small file.
//
// # Errors
//
// Those of the file system, and of package encoding/json for a file that is damaged.
package jobfile
