// Package node assembles a node: the supervision tree of control plane, raylet, owners,
// object store and spillers, the sessions of the clients connected to it, and the way a
// message takes between them.
//
// # Who owns what
//
// Node is assembled of parts, each a type with its own state that has what it uses: compose in node.go gives it to them, assemble starts them in order, and
// Close ends them. parts.go has all of them with what each knows. The parts are shells and tables. What is to be decided of a job's life, and of who is let in, package jobs decides, and of a
// client's end package member; what is asked about a node package inspect answers (requests.go, inspected.go); what it records of itself is package
// observe's (observed.go).
//
// A session owns what is queued for one client and nothing else: handles, pins and leases of a client live in owner, store and
// scheduler, which are told when it is gone. Locks guard tables alone: the owners (owners.go) and sessions (session.go), which everybody reads, the shell
// of jobs writes.
//
// # The way of a message
//
// A client's messages arrive in batches, in order. Package route says whom each is for: Create, Abort, Unpin and the store's
// Holdings are the store's, a Request has a goroutine of its own, everything else is the owner's
// of the job that the message's id names. What is for nobody here, or belongs to another home, is refused: the connection ends with the reason. Messages to a client are queued on its session
// and leave when the sender has stepped its batch; those for a client that does not read stay
// there until it does (docs/decisions/0013).
//
// A job of another node has an agent here (agent.go) in its owner's place, and goes by links.go: what is said to another node waits in a Box (package
// link), what comes from there goes on to workers, scheduler, store and owners as what comes from here does. What such a job's owner says to workers here, and their reports
// of tasks, pass as they were encoded (wire.Encoded), unless a client in this process or a test's plan reads them.
//
// Where a test has given the node a plan (package chaos), faulty.go stands at both ends of this way: it holds messages up, repeats
// them, or cuts the connection. Without a plan nothing of it is there.
//
// # What a start reads
//
// claim (node.go) takes the directory's lock, and reads the files identity, clock and secret. assemble goes on with the file home, the control plane's tables where an
// earlier life has left some, the store's index and spill targets, and each job's file and log (restore.go).
//
// # What blocks
//
// Start until the tree is up (the control plane starts when a name is asked for), Close until everything
// has stopped, Attach and Dial until the client is welcome. Nothing on a message's way.
//
// # Errors
//
// ErrProtocol for a message that no client sends, ErrNotFound for what belongs to another home, ErrInvalid for a configuration, ErrSegmentUnavailable where shared memory cannot be had,
// ErrRegistryMismatch and ErrPermission for a client that cannot be let in.
package node
