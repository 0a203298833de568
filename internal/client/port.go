package client

import (
	"os"

	"mobula/internal/safefs"
	"mobula/wire"
)

// Port is the way to the node: one ordered stream of messages.
type Port interface {
	// Send hands messages over, in order. It blocks only for backpressure and is safe for
	// concurrent use. The messages are given up; the slice is the caller's again on return.
	// An error means that the connection is gone.
	Send(msgs ...wire.Msg) error
	Close() error
}

// TurnPort is a Port inside the node's process. Whoever is about to wait sends by it: turn,
// where it is not nil, is the node's work on the messages, which the caller does once it
// holds no lock. Nobody is woken for it.
type TurnPort interface {
	Port
	SendTurn(msgs ...wire.Msg) (turn func(), err error)
}

// Memory finds the bytes of an extent. segment.Mapping implements it.
type Memory interface {
	// Map gives the extent's bytes: mapped read-only, or writable for an extent that was
	// granted to this client and is not sealed. Its length and capacity are e.Size.
	Map(e wire.Extent, write bool) ([]byte, error)
}

// FileMapper is a Memory that can map further files, as the node announces them.
type FileMapper interface {
	// Add maps size bytes of f under the number that extents name. f stays the caller's.
	Add(file uint32, f *os.File, size uint64) error
	// Drop unmaps a file of which nothing is read or written any more.
	Drop(file uint32) error
}

// mapFile maps an announced file: from the descriptor that came with the message or,
// inside one process, by its path. Where it fails, whoever needs the file gets an error.
func (c *Client) mapFile(m *wire.MapFile) {
	mapper, ok := c.mem().(FileMapper)
	if !ok {
		c.log.Error("the node announced a file, and this client cannot map files", "file", m.File)
		return
	}
	f := m.Opened
	if f == nil {
		var err error
		if f, err = safefs.OpenFile(m.Path, os.O_RDWR, 0); err != nil {
			c.log.Error("cannot open a file of the object store", "file", m.File, "path", m.Path, "err", err)
			return
		}
	}
	defer func() { _ = f.Close() }() // the mapping has its own
	if err := mapper.Add(m.File, f, m.Size); err != nil {
		c.log.Error("cannot map a file of the object store", "file", m.File, "path", m.Path, "err", err)
	}
}

// unmapFile drops a file that the node has dropped.
func (c *Client) unmapFile(m *wire.UnmapFile) {
	mapper, ok := c.mem().(FileMapper)
	if !ok || m.File == 0 {
		return
	}
	if err := mapper.Drop(m.File); err != nil {
		c.log.Error("cannot unmap a file of the object store", "file", m.File, "err", err)
	}
}
