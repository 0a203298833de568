// Package blobs decides how what a job's workers run comes to a node that is not the job's home: whom to ask, what is under way, what is kept here and what
// is removed.
//
// A blob is bytes under their SHA-256: an executable, the zip of a Python driver's own modules, or a function that a Python process has pickled. The job's
// home has all blobs of the job. Another node asks it which blob it is (Ask), looks whether that is here already (Look), and else has it sent in chunks
// (Pull). A function that a worker elsewhere has made goes the other way: the home fetches it, as from any other node.
//
// # Who owns what
//
// A Core owns what is wanted (by job and kind) and not yet here, the fetches under way, and the table of the cache: executables and zips, whose jobs run here
// or did. What several jobs want is fetched once. The files are the shell's: it writes a blob beside its place, checks its hash and only then puts it there. Functions lie
// in their job's directory and go with it; they are not in the table. A new core is told what lies in the cache and which jobs use it, and is asked once more
// for what is unanswered: a fetch that was under way begins anew.
//
// # Bounds
//
// Blobs go between the messages of nodes, so little of them is under way at a time: Window chunks of ChunkSize bytes in all, which fetches take in turn. A
// chunk counts until it is written to disk. The cache has a limit: what no job here uses is removed, longest unused first, and what still does not fit is refused.
//
// # What blocks
//
// Nothing: the core is pure. Each wait ends by an answer, or when the node that was asked is gone (NodeGone), or with the job (Over).
//
// # Errors
//
// Failed has the error of the job's home, or of this node's disk; CodeOutOfDisk: the cache is full; CodeWorkerCrashed: the node that was asked is gone; CodeOwnerDied: the job
// is over; CodeProtocol: what came is not what was asked for.
package blobs
