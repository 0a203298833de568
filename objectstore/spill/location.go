package spill

import "mobula/internal/ids"

// Item is one object to write.
type Item struct {
	ID      ids.ObjectID
	Attempt uint32
	Data    []byte // segment memory, unchanged until the write is done
}

// Location says where an object lies: what the store keeps instead of an extent.
type Location struct {
	Target uint16 // index in Config.URLs
	File   uint64 // number of the file within the target
	Off    uint64 // of the first byte, from the file's start
	Size   uint64 // bytes
	CRC    uint32 // CRC-32C of the bytes
}
