package spill

import (
	"mobula/internal/ids"
	"mobula/objectstore/spill/format"
)

// Item is one object to write: ID, Attempt, and Data, which is segment memory and must not change until the write
// is done.
type Item = format.Object

// Location says where an object lies in spill storage. The store keeps it instead of an extent.
type Location struct {
	Target uint16 // number of the target: the index in Config.URLs, or the number that Config.Node keeps there
	File   uint64 // number of the file within the target
	Off    uint64 // of the first byte, from the file's start
	Size   uint64 // bytes
	CRC    uint32 // CRC-32C of the bytes
}

// Copy is an object to write anew from where it lies in spill storage.
type Copy struct {
	ID      ids.ObjectID
	Attempt uint32
	From    Location
}

// Capacity is a target's size in bytes; Total is 0 if it is unlimited.
type Capacity struct{ Used, Total uint64 }
