package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	wireSchema = "mobula.proto"    // in wire
	logSchema  = "record.proto"    // in raylet/owner/record
	nodeSchema = "internode.proto" // in raylet/internode
)

// schemas are the parsed schemas.
type schemas struct{ wire, log, nodes protoreflect.FileDescriptor }

func compile(root string) (s schemas, err error) {
	c := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{filepath.Join(root, "wire"), filepath.Join(root, "raylet/owner/record"), filepath.Join(root, "raylet/internode")},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard, // keeps the comments, and where things stand
	}
	files, err := c.Compile(context.Background(), wireSchema, logSchema, nodeSchema)
	if err != nil {
		return s, fmt.Errorf("compile the schemas: %w", err)
	}
	return schemas{files[0], files[1], files[2]}, nil
}

// messages are those of a schema that are structs in Go, in its order.
func messages(f protoreflect.FileDescriptor) (all []protoreflect.MessageDescriptor) {
	for i := range f.Messages().Len() {
		if m := f.Messages().Get(i); m.Name() != "Frame" {
			all = append(all, m)
		}
	}
	return all
}

// framed are the messages with a kind, in its order: the fields of the message that stands first.
func framed(f protoreflect.FileDescriptor) (all []protoreflect.MessageDescriptor, err error) {
	frame := f.Messages().Get(0)
	fields := frame.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if int(fd.Number()) != i+1 || !fd.IsList() || fd.Message() == nil {
			return nil, at(fd, "field %s of %s: the kinds are messages, repeated, and numbered without a gap", fd.Name(), frame.Name())
		}
		all = append(all, fd.Message())
	}
	return all, nil
}

// at is an error that names the line of d.
func at(d protoreflect.Descriptor, format string, args ...any) error {
	line := d.ParentFile().SourceLocations().ByDescriptor(d).StartLine + 1
	return fmt.Errorf("%s:%d: %s", d.ParentFile().Path(), line, fmt.Sprintf(format, args...))
}

// protobuf gives the source that protoc-gen-go makes of the schema.
func protobuf(f protoreflect.FileDescriptor) ([]byte, error) {
	// Once through bytes: the generator wants options as concrete messages.
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto(f))
	if err != nil {
		return nil, fmt.Errorf("marshal the descriptor: %w", err)
	}
	fd := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal(raw, fd); err != nil {
		return nil, fmt.Errorf("read the descriptor back: %w", err)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{wireSchema},
		Parameter:      new("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{fd},
	})
	if err != nil {
		return nil, fmt.Errorf("prepare the generator: %w", err)
	}
	for _, f := range plugin.Files {
		if f.Generate {
			internal_gengo.GenerateFile(plugin, f)
		}
	}
	resp := plugin.Response()
	if resp.Error != nil {
		return nil, fmt.Errorf("generate: %s", resp.GetError())
	}
	if len(resp.File) != 1 {
		return nil, fmt.Errorf("generate: %d files for one schema", len(resp.File))
	}
	return []byte(resp.File[0].GetContent()), nil
}
