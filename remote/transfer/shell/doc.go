// Package shell carries out what package transfer decides: it dials and accepts connections, reads chunks into the memory that the store has given for an
// object, and writes them out of the memory where the store has it.
//
// # Who owns what
//
// A Transfer is the Peers of an object store. It owns the connections, the memory of fetches until done, and the memory that the store has served
// until it calls that done. Memory is given back when no goroutine reads or writes it any more. After a panic of the core all connections are closed, and
// the fetches under way begin anew.
//
// A Transport makes connections, and vouches for the node at the other end; it says which are within this machine (SameMachine). It belongs to the Transfer from Open on, which closes it.
//
// # What blocks
//
// Each connection has a goroutine that reads and one that writes; both end with it. A chunk whose memory has to be brought is put in place by a third, while the
// next one is read: one at a time, and the reader ends after it. A write has WriteTimeout, a dial DialTimeout. Fetch, Serve, Sources and Gone do not block.
//
// # Errors
//
// Those of package transfer. A room for which there is no memory ends its fetch with ErrSegmentUnavailable of package errs. ErrSum closes the connection on which wrong bytes came. A Transfer that has stopped answers with ErrShutdown of package errs.
package shell
