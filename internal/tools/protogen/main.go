package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	check := flag.Bool("check", false, "compare with the files on disk and write nothing")
	root := flag.String("root", ".", "the module's root directory")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "protogen:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, name)
		if !check {
			if err := os.WriteFile(path, files[name], 0o644); err != nil {
				return err
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, files[name]) {
			return fmt.Errorf("%s does not match the schema and the structs: run go generate ./wire", name)
		}
	}
	return nil
}

// generate gives the files, by path below root.
func generate(root string) (map[string][]byte, error) {
	s, err := compile(root)
	if err != nil {
		return nil, err
	}
	in, err := readStructs(root)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, f := range []struct {
		name  string
		write func() ([]byte, error)
	}{
		{"wire/kinds_gen.go", func() ([]byte, error) { return kinds(s.wire, "wire") }},
		{"wire/encode_gen.go", func() ([]byte, error) { return encoders(s.wire, in) }},
		{"wire/decode_gen.go", func() ([]byte, error) { return decoders(s.wire, in) }},
		{"raylet/owner/record/codec_gen.go", func() ([]byte, error) { return records(s.log, in) }},
		{"raylet/internode/kinds_gen.go", func() ([]byte, error) { return kinds(s.nodes, "internode") }},
		{"raylet/internode/codec_gen.go", func() ([]byte, error) { return betweenNodes(s.nodes, in) }},
		{"python/mobula/_wire/messages.py", func() ([]byte, error) { return python(s.wire) }},
		{"wire/pb/mobula.pb.go", func() ([]byte, error) { return protobuf(s.wire) }},
	} {
		if files[f.name], err = f.write(); err != nil {
			return nil, err
		}
	}
	return files, nil
}
