// Package registry is the table of the functions, actor types and methods of this
// binary: package mobula fills it while packages initialise, package worker looks
// functions up in it.
//
// The table is guarded by a lock and only grows. Register panics on a duplicate or
// incomplete entry, because that is a mistake in the program that no caller could
// handle; nothing else here fails or blocks.
package registry
