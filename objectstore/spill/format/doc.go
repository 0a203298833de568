// Package format is the layout of a spill file: a header page, the objects, an index.
//
//	0            header, one page: magic, session, file number, object count, offset of the index
//	4096         objects: those of 64 KiB and more start at a page, smaller ones at 64 bytes
//	IndexOff     44 bytes for each object, their checksum, an end mark; zeros up to a page
//
// Numbers are little endian. The layout depends only on the objects' sizes, so the file's size is known before the
// first byte is written. A Stream turns objects into batches of page-sized pieces for direct I/O: large objects
// are written from where they lie, small ones are copied together.
//
// Nothing here blocks or does I/O. A Stream is for one goroutine; batches may be freed from any. Decoders
// return ErrFormat and never panic, whatever the bytes.
package format
