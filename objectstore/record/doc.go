// Package record is what the object store remembers of each object and client, so that a new core can take them over.
//
// The store's core says which record goes into which slot; package index keeps them in a file. A record is a plain value: it owns
// nothing, blocks nowhere and has no errors.
package record
