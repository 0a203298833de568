package blobs

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// Effect is what the shell does.
type Effect interface{ blobsEffect() }

// Ask asks a node which blob a key is; answered by Found.
type Ask struct {
	Node ids.Home
	Key  Key
}

// Look sees whether a blob is here, and checks its hash, once in a life of the node; answered by Looked. What is damaged it removes.
type Look struct {
	Fetch uint64
	Place Place
}

// Begin makes room for a blob; answered by Begun.
type Begin struct {
	Fetch uint64
	Place Place
	Size  uint64
}

// Pull asks a node for Size bytes of a blob; answered by Chunk.
type Pull struct {
	Node   ids.Home
	Key    Key
	Hash   Hash
	Offset uint64
	Size   uint64
}

// Write writes a part of a blob, which may come in any order; answered by Written.
type Write struct {
	Fetch  uint64
	Offset uint64
	Data   []byte
}

// Store checks the hash of a blob, all of which is written, and puts it in its place; answered by Stored.
type Store struct{ Fetch uint64 }

// Drop gives up what was begun.
type Drop struct{ Fetch uint64 }

// Remove removes a blob from the cache.
type Remove struct{ Hash Hash }

// Have answers Want: the blob is here, and stays while its job does.
type Have struct {
	Key   Key
	Place Place
}

// Failed answers Want. What is wanted again is tried again.
type Failed struct {
	Key Key
	Err *errs.Error
}

func (Ask) blobsEffect()    {}
func (Look) blobsEffect()   {}
func (Begin) blobsEffect()  {}
func (Pull) blobsEffect()   {}
func (Write) blobsEffect()  {}
func (Store) blobsEffect()  {}
func (Drop) blobsEffect()   {}
func (Remove) blobsEffect() {}
func (Have) blobsEffect()   {}
func (Failed) blobsEffect() {}
