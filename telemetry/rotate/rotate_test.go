package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// Whatever is written, files are within their size, no more of them than said, no line is
// cut, and what is there is the end of what was written.
func TestBoundsHoldAndTheNewestStays(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "r")
		if err != nil {
			rt.Fatal(err)
		}
		size, keep := rapid.Int64Range(20, 200).Draw(rt, "size"), rapid.IntRange(0, 3).Draw(rt, "keep")
		path := filepath.Join(dir, "sub", "log")
		w := New(path, size, keep)
		var all strings.Builder
		for i := range rapid.IntRange(0, 60).Draw(rt, "writes") {
			line := fmt.Sprintf("%d %s\n", i, strings.Repeat("x", rapid.IntRange(0, 12).Draw(rt, "len")))
			all.WriteString(line)
			if n, err := w.Write([]byte(line)); err != nil || n != len(line) {
				rt.Fatalf("write of %d: %d, %v", len(line), n, err)
			}
			if rapid.IntRange(0, 9).Draw(rt, "reopen") == 0 { // a process that comes back continues
				if err := w.Close(); err != nil {
					rt.Fatal(err)
				}
				w = New(path, size, keep)
			}
		}
		if err := w.Close(); err != nil {
			rt.Fatal(err)
		}
		var kept []byte
		for i := keep + 1; i >= 0; i-- {
			name := path
			if i > 0 {
				name = fmt.Sprintf("%s.%d", path, i)
			}
			b, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			if i > keep || int64(len(b)) > size || !bytes.HasSuffix(b, []byte("\n")) {
				rt.Fatalf("%s has %d bytes, at most %d in %d files", name, len(b), size, keep+1)
			}
			kept = append(kept, b...)
		}
		if !strings.HasSuffix(all.String(), string(kept)) || all.Len() > 0 && len(kept) == 0 {
			rt.Fatalf("kept %q of %q", kept, all.String())
		}
	})
}

func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	w := New(path, 1000, 100)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				if _, err := w.Write([]byte("0123456789\n")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines += strings.Count(string(b), "0123456789\n")
	}
	if lines != 800 {
		t.Errorf("%d whole lines of 800", lines)
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	w := New(filepath.Join(dir, "log"), 10, 1)
	if _, err := w.Write(make([]byte, 11)); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a write beyond the size: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, errs.ErrShutdown) {
		t.Errorf("a write after Close: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(filepath.Join(dir, "file", "log"), 10, 1).Write([]byte("x")); err == nil {
		t.Error("a directory that is a file is no error")
	}
}
