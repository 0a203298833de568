// Package blobdir keeps blobs in files: bytes that were fetched from another node, under their SHA-256. What is to be fetched package blobs decides.
//
// # What it guarantees
//
// A file with a blob's name has that blob's bytes: it is written under another name, and gets its own after its hash was checked. A file that an earlier life of
// the node left is checked again before it is used (Check). All are this user's alone, after the rules of package safefs. Nothing is flushed to disk: after a
// crash of the machine Check finds what is damaged.
//
// # Who owns what
//
// A Part is its caller's: nothing knows it until Store. It is not safe for concurrent use but for Write.
//
// # What blocks
//
// Only the disk.
//
// # Errors
//
// errs.ErrOutOfDisk where the disk is full, errs.ErrProtocol where the bytes are not those of the hash; errs.ErrPermission of package safefs; other system errors
// as they are.
package blobdir
