// Command protogen generates wire/pb/mobula.pb.go from wire/mobula.proto with
// nothing but Go: protocompile parses, protoc-gen-go's own generator writes.
//
//	go run ./internal/tools/protogen          # from the module's root: generate
//	go run ./internal/tools/protogen -check   # fail if the file is stale
package main
