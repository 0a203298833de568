package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"mobula"
)

// Counts says how often each word occurs.
type Counts map[string]int

// Count counts the words of some files; Merge adds up any number of counts.
var (
	Count = mobula.Register1("wordcount/count", count)
	Merge = mobula.RegisterVar0("wordcount/merge", func(_ context.Context, parts []Counts) (Counts, error) {
		out := Counts{}
		for _, p := range parts {
			for w, n := range p {
				out[w] += n
			}
		}
		return out, nil
	})
)

func count(ctx context.Context, files []string) (Counts, error) {
	out := Counts{}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for w := range bytes.FieldsFuncSeq(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' }) {
			out[string(w)]++
		}
	}
	return out, nil
}

func main() {
	if mobula.WorkerMain() {
		return
	}
	dir := flag.String("dir", "", "the tree to read; default: the Go toolchain's sources")
	top := flag.Int("top", 20, "how many words to print")
	flag.Parse()
	mobula.Main(func(ctx context.Context, _ *mobula.Cluster) error {
		root := *dir
		if root == "" {
			out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
			if err != nil {
				return fmt.Errorf("go env GOROOT: %w; name a directory with -dir", err)
			}
			root = filepath.Join(strings.TrimSpace(string(out)), "src")
		}
		start := time.Now()
		files, err := sources(root)
		if err != nil {
			return err
		}
		words, err := run(ctx, files)
		if err != nil {
			return err
		}
		total := 0
		for _, n := range words {
			total += n
		}
		fmt.Printf("%s: %d files, %d words, %d different, in %v\n", root, len(files), total, len(words), time.Since(start).Round(time.Millisecond))
		for _, w := range most(words, *top) {
			fmt.Printf("%9d %s\n", words[w], w)
		}
		return nil
	}, mobula.WithProcesses())
}

// sources lists the Go files under a directory.
func sources(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

const (
	perTask = 64 // files that one task reads
	fanIn   = 8  // counts that one reduction adds up
)

// run counts the words of all files.
func run(ctx context.Context, files []string) (Counts, error) {
	var parts []mobula.Ref[Counts]
	for chunk := range slices.Chunk(files, perTask) {
		parts = append(parts, Count.Go(ctx, mobula.V(chunk)))
	}
	for len(parts) > 1 {
		var next []mobula.Ref[Counts]
		for chunk := range slices.Chunk(parts, fanIn) {
			next = append(next, Merge.Go(ctx, chunk))
		}
		parts = next // what was merged is not needed any more
	}
	if len(parts) == 0 {
		return Counts{}, nil
	}
	return parts[0].Get(ctx)
}

// most gives the n most frequent words, ties in alphabetical order.
func most(words Counts, n int) []string {
	list := slices.SortedFunc(maps.Keys(words), func(a, b string) int {
		return cmp.Or(cmp.Compare(words[b], words[a]), cmp.Compare(a, b))
	})
	return list[:min(n, len(list))]
}
