package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func TestWordsOfTheStandardLibrary(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := sources(filepath.Join(strings.TrimSpace(string(root)), "src", "net"))
	if err != nil || len(files) < 3*perTask {
		t.Fatalf("%d files, %v", len(files), err)
	}
	want, err := count(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]mobula.StartOption{"embedded": nil, "processes": {mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			got, err := run(mobulatest.Context(t, opts...), files)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%d words, want %d", len(got), len(want))
			}
		})
	}
}

func TestNoFilesNoWords(t *testing.T) {
	got, err := run(mobulatest.Context(t), nil)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAMissingFileIsSaidByName(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nowhere.go")
	if _, err := run(mobulatest.Context(t), []string{missing}); err == nil || !strings.Contains(err.Error(), "nowhere.go") {
		t.Errorf("got %v", err)
	}
}

func TestMostFrequentFirst(t *testing.T) {
	if got := most(Counts{"b": 2, "a": 2, "c": 3, "d": 1}, 3); !slices.Equal(got, []string{"c", "a", "b"}) {
		t.Errorf("got %v", got)
	}
}

func TestSourcesAreGoFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "b.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("package x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := sources(dir); err != nil || len(got) != 1 || filepath.Base(got[0]) != "a.go" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := sources(filepath.Join(dir, "none")); err == nil {
		t.Error("a directory that is not there is no error")
	}
}
