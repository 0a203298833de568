// Command protogen writes everything that follows from the fields of the messages, so that a field is added in two
// places: wire/mobula.proto, which gives it a number and a type on the wire, and the Go struct of the same name.
//
//	go run ./internal/tools/protogen          # from the module's root: generate
//	go run ./internal/tools/protogen -check   # fail if a file is stale
//
// It writes
//
//   - wire/kinds_gen.go, encode_gen.go, decode_gen.go: the kinds, and the codec but for the messages on a task's path,
//     which are by hand (byHand in gocodec.go);
//   - raylet/owner/record/codec_gen.go: the records of the owner's log, after raylet/owner/record/record.proto;
//   - raylet/internode/kinds_gen.go, codec_gen.go: the messages between nodes, after raylet/internode/internode.proto;
//   - python/mobula/_wire/messages.py: the messages as Python has them, and the table that its codec follows;
//   - wire/pb/mobula.pb.go: what protoc-gen-go makes of the schema, against which tests hold the codec.
//
// It uses nothing but Go: protocompile parses the schema, and an error names its line. It fails where a field of the
// schema has no field of the Go struct, or the other way round.
package main
