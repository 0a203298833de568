// Package codec lays values out as bytes: a value becomes a short Meta, which says
// how, and Data.
//
//	[]byte, []float64, [][16]int32, []bool ...  raw, little endian, dense; read in place
//	string                                      its UTF-8 bytes
//	proto.Message                               protobuf, deterministic
//	everything else                             CBOR (RFC 8949, core deterministic)
//
// A time.Time is RFC 3339 text, of a year from 0 to 9999 (Python's begin at 1) and a zone of whole minutes, less than a day from UTC. What has
// another zone is read as UTC, and refused when it is encoded. A big.Float is decimal text, which is read with 64 bits: one that reads back as another
// number is refused.
//
// What is encoded can be decoded. A string holds any bytes; other languages refuse one that is not UTF-8. A NaN is the canonical one, but in arrays. A map of
// which two keys are encoded alike, or one could not be read, is refused, and so is a struct of which an exported field would be left out without a tag that
// says so. A value is at most MaxDepth levels deep, pointers not counted. In an any, a map with text keys only is a map[string]any.
//
// A Registry holds the plan of every Go type seen (how to encode it, whether it may hold object references, why it
// cannot be encoded), and the codecs that a program adds. A plan is made once for each type; after that encoding
// and decoding take no lock. Nothing blocks and no state is kept between calls.
//
// Sizes are known before anything is written, so a large value is written once,
// straight into the segment. CBOR alone is encoded on the heap first.
//
// Errors: errs.ErrNotEncodable names the type and the path to the part at fault
// (Job.Done: chan struct {}); errs.ErrNotDecodable names the type that was
// stored and the one that was asked for. Decoders never panic, whatever the bytes.
package codec
