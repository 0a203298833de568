package codec

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// corpusFile has what fuzzing has found for FuzzDecode, an input a line: the meta and the data, quoted.
const corpusFile = "testdata/corpus.txt"

var corpusFrom = flag.String("corpus", "", "add the inputs of a directory, $(go env GOCACHE)/fuzz/mobula/internal/codec/FuzzDecode, to "+corpusFile)

type input struct{ meta, data string }

func (in input) String() string { return fmt.Sprintf("%q %q", in.meta, in.data) }

func readCorpus(t testing.TB) []input {
	t.Helper()
	text, err := os.ReadFile(corpusFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []input
	for line := range strings.Lines(string(text)) {
		var in input
		if _, err := fmt.Sscanf(line, "%q %q\n", &in.meta, &in.data); err != nil {
			t.Fatalf("%s: %q: %v", corpusFile, line, err)
		}
		all = append(all, in)
	}
	return all
}

// TestTheCorpusIsRead writes it anew, sorted, if there are inputs to add.
func TestTheCorpusIsRead(t *testing.T) {
	all := make(map[input]bool)
	for _, in := range readCorpus(t) {
		all[in] = true
	}
	if *corpusFrom == "" {
		if len(all) < 500 {
			t.Errorf("%d inputs", len(all))
		}
		return
	}
	files, err := filepath.Glob(filepath.Join(*corpusFrom, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files in %s: %v", len(files), *corpusFrom, err)
	}
	for _, file := range files {
		all[fuzzed(t, file)] = true
	}
	lines := make([]string, 0, len(all))
	for in := range maps.Keys(all) {
		lines = append(lines, in.String()+"\n")
	}
	slices.Sort(lines)
	if err := os.WriteFile(corpusFile, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// fuzzed reads an input as go test writes it: a line of Go for each argument, []byte("...").
func fuzzed(t *testing.T, file string) input {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, args, _ := strings.Cut(string(text), "\n")
	var got []string
	for line := range strings.Lines(args) {
		e, err := parser.ParseExpr(line)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		s, err := strconv.Unquote(e.(*ast.CallExpr).Args[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		got = append(got, s)
	}
	if len(got) != 2 {
		t.Fatalf("%s has %d arguments", file, len(got))
	}
	return input{got[0], got[1]}
}
