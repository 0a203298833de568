package client

import (
	"os"
	"sync/atomic"

	"mobula/internal/safefs"
	"mobula/wire"
)

// Memory finds the bytes of an extent. segment.Mapping implements it.
type Memory interface {
	// Map gives the extent's bytes: mapped read-only, or writable for an extent that was
	// granted to this client and is not sealed. Its length and capacity are e.Size.
	Map(e wire.Extent, write bool) ([]byte, error)
}

// Writer is a Memory that can write faster than a copy to the result of Map: with several threads, or with pages
// created with the bytes in them.
type Writer interface {
	Write(e wire.Extent, src []byte) error
}

// FileMapper is a Memory that can map further files, as the node announces them.
type FileMapper interface {
	// Add maps size bytes of f under the number that extents name. f still belongs to the caller.
	Add(file uint32, f *os.File, size uint64) error
	// Drop unmaps a file that nobody reads or writes any more.
	Drop(file uint32) error
}

// memory is the node's segment as mapped here. A restarted node has another.
type memory struct {
	*base
	of atomic.Pointer[Memory]
}

func (me *memory) mem() Memory { return *me.of.Load() }

// mapFile maps an announced file: from the descriptor that came with the message or,
// inside one process, by its path. If that fails, whoever needs the file gets an error.
func (me *memory) mapFile(m *wire.MapFile) {
	mapper, ok := me.mem().(FileMapper)
	if !ok {
		me.log.Error("the node announced a file, and this client cannot map files", "file", m.File)
		return
	}
	f := m.Opened
	if f == nil {
		var err error
		if f, err = safefs.OpenFile(m.Path, os.O_RDWR, 0); err != nil {
			me.log.Error("cannot open a file of the object store", "file", m.File, "path", m.Path, "err", err)
			return
		}
	}
	defer func() { _ = f.Close() }() // the mapping has its own
	if err := mapper.Add(m.File, f, m.Size); err != nil {
		me.log.Error("cannot map a file of the object store", "file", m.File, "path", m.Path, "err", err)
	}
}

// unmapFile drops a file that the node has dropped.
func (me *memory) unmapFile(m *wire.UnmapFile) {
	mapper, ok := me.mem().(FileMapper)
	if !ok || m.File == 0 {
		return
	}
	if err := mapper.Drop(m.File); err != nil {
		me.log.Error("cannot unmap a file of the object store", "file", m.File, "err", err)
	}
}
