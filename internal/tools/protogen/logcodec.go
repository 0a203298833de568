package main

import (
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// records writes the codec of the log: the messages of its schema, and those that they have inside.
func records(log protoreflect.FileDescriptor, in *goTypes) ([]byte, error) {
	k := &fieldCodec{in: in, pkg: "record", schema: log, log: true, source: goSource("record",
		"mobula/internal/ids", "mobula/internal/protofield", "mobula/raylet/owner/actor", "mobula/raylet/owner/task", "mobula/wire")}
	for _, m := range messages(log) {
		if typ := "record." + string(m.Name()); in.structs[typ] != nil {
			k.add(m, typ)
		}
	}
	if err := k.write(nil); err != nil {
		return nil, err
	}
	for _, m := range messages(log) {
		if !slices.ContainsFunc(k.todo, func(t *coded) bool { return t.MessageDescriptor == m }) {
			return nil, at(m, "message %s is no record in Go, and inside none", m.Name())
		}
	}
	return k.gofmt()
}
