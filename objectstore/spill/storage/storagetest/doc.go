// Package storagetest is the test that every storage.Storage has to pass.
//
// A Subject opens and damages one implementation; the test owns what it writes there and
// removes it. It blocks for the storage's I/O, and reports through testing.T.
package storagetest
