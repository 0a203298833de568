package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const root = "../../.."

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from what is generated (%v): run make generate", name, err)
		}
	}
	have, err := filepath.Glob(filepath.Join(root, "zz_*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if _, ok := files[filepath.Base(path)]; !ok {
			t.Errorf("%s is not generated any more: remove it", path)
		}
	}
}

func TestEachFillsIn(t *testing.T) {
	got := each([]string{"A", "B"}, "LOWER NAME INDEX of COUNT", "; ")
	if want := "a A 0 of 2; b B 1 of 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if tail("") != "" || tail("x") != ", x" || brackets() != "" || brackets("A", "B any") != "[A, B any]" || !slices.Equal(names(3), []string{"A", "B", "C"}) {
		t.Error("lists of type parameters are wrong")
	}
}
