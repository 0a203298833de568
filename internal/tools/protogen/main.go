package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	schemaDir = "wire"
	schema    = "mobula.proto"
	outFile   = "wire/pb/mobula.pb.go"
)

func main() {
	check := flag.Bool("check", false, "compare with the file on disk and write nothing")
	root := flag.String("root", ".", "the module's root directory")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	want, err := generate(root)
	if err != nil {
		return err
	}
	out := filepath.Join(root, outFile)
	if !check {
		return os.WriteFile(out, want, 0o644)
	}
	have, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s does not match %s/%s: run go run ./internal/tools/protogen", outFile, schemaDir, schema)
	}
	return nil
}

// generate returns the Go source for the schema under root.
func generate(root string) ([]byte, error) {
	c := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			ImportPaths: []string{filepath.Join(root, schemaDir)},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard, // keeps the comments
	}
	files, err := c.Compile(context.Background(), schema)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", schema, err)
	}
	// Once through bytes: the generator wants options as concrete messages.
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto(files[0]))
	if err != nil {
		return nil, fmt.Errorf("marshal the descriptor: %w", err)
	}
	fd := new(descriptorpb.FileDescriptorProto)
	if err := proto.Unmarshal(raw, fd); err != nil {
		return nil, fmt.Errorf("read the descriptor back: %w", err)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{schema},
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
