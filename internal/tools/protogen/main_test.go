package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const moduleRoot = "../../.."

func TestGeneratedCodeIsFresh(t *testing.T) {
	if err := run(moduleRoot, true); err != nil {
		t.Fatal(err)
	}
}

func TestStaleCodeIsReported(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"wire/mobula.proto", "wire/pb/mobula.pb.go"} {
		data, err := os.ReadFile(filepath.Join(moduleRoot, f))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".proto") {
			data = append(data, "\nmessage OneMore {}\n"...)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, f), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Fatalf("a schema with one more message passed the check: %v", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Fatalf("freshly generated code is called stale: %v", err)
	}
}

func TestBadSchemaNamesTheLine(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "wire"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := "syntax = \"proto3\";\nmessage A { nosuch x = 1; }\n"
	if err := os.WriteFile(filepath.Join(root, "wire/mobula.proto"), []byte(bad), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, false); err == nil || !strings.Contains(err.Error(), "mobula.proto:2") {
		t.Fatalf("got %v, want an error that names line 2", err)
	}
}
