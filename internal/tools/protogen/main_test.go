package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const moduleRoot = "../../.."

func TestGeneratedCodeIsFresh(t *testing.T) {
	if err := run(moduleRoot, true); err != nil {
		t.Fatal(err)
	}
}

// edited is a copy of what the generator reads and writes, with one text replaced in one of the files.
func edited(t *testing.T, file, old, with string) (root string) {
	t.Helper()
	root = t.TempDir()
	files := []string{"wire/mobula.proto", "raylet/owner/record/record.proto", "raylet/internode/internode.proto", "wire/pb/mobula.pb.go", "python/mobula/_wire/messages.py"}
	for _, dir := range packages {
		names, err := filepath.Glob(filepath.Join(moduleRoot, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			files = append(files, filepath.Join(dir, filepath.Base(name)))
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(data); name == file {
			if strings.Count(text, old) != 1 {
				t.Fatalf("%s has %q %d times", file, old, strings.Count(text, old))
			}
			data = []byte(strings.Replace(text, old, with, 1))
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestStaleCodeIsReported(t *testing.T) {
	root := edited(t, "wire/mobula.proto", "  OnPanic on_panic = 28;\n", "  OnPanic on_panic = 28;\n  sint32 patience = 29;\n")
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "mobula.proto:") {
		t.Fatalf("a field that Go does not have: %v", err)
	}
	value := filepath.Join(root, "wire/value.go")
	data, err := os.ReadFile(value)
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(data), "type TaskOptions struct {", "type TaskOptions struct {\n\tPatience int32", 1)
	if err := os.WriteFile(value, []byte(more), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Fatalf("a schema with one more field passed the check: %v", err)
	}
	if err := run(root, false); err != nil {
		t.Fatal(err)
	}
	if err := run(root, true); err != nil {
		t.Fatalf("freshly generated code is called stale: %v", err)
	}
	for name, want := range map[string]string{ // one field, added in two places, is everywhere
		"wire/encode_gen.go": "e.sint(29, int64(m.Patience))", "wire/decode_gen.go": "m.Patience = c.sint32()",
		"raylet/owner/record/codec_gen.go": "protofield.PutInt(b, 30, int64(r.Patience))", "raylet/internode/codec_gen.go": "r.Patience = int32(f.Int())",
		"python/mobula/_wire/messages.py": `Field(29, "patience", "s")`,
	} {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s does not have %q (%v)", name, want, err)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct {
		file, old, with string
		words           []string
	}{
		{"wire/mobula.proto", "sint64 amount = 2;", "nosuch amount = 2;", []string{"mobula.proto:LINE", "nosuch"}},
		{"wire/mobula.proto", "sint64 amount = 2;", "sint64 amount = 1;", []string{"mobula.proto:LINE", "same tag 1"}},
		{"wire/mobula.proto", "sint64 amount = 2;", "sint64 amounts = 2;", []string{"mobula.proto:LINE", "amounts", "wire.Resource"}},
		{"wire/mobula.proto", "sint64 amount = 2;", "float amount = 2;", []string{"mobula.proto:LINE", "amount", "float", "int64 in Go"}},
		{"wire/mobula.proto", "sint64 amount = 2;", "sint64 amount = 3;", []string{"mobula.proto:LINE", "without a gap"}},
		{"wire/mobula.proto", "  repeated Credit credit = 34;\n", "", []string{"mobula.proto:", "collect", "without a gap"}},
		{"wire/value.go", "\tAmount int64\n", "\tAmount int64\n\tMore int64\n", []string{"value.go:", "More", "wire.Resource", "mobula.proto"}},
		{"raylet/owner/record/record.proto", "uint32 tries = 3;", "uint32 tried = 3;", []string{"record.proto:", "tried", "record.Retry"}},
		{"raylet/owner/record/record.proto", "message Retry {", "message Again {", []string{"record.proto:LINE", "Again"}},
		{"raylet/internode/internode.proto", "  message Reclaim {", "  message Recall {", []string{"internode.proto:", "Reclaim"}},
		{"raylet/internode/internode.proto", "Sched.Resync resync = 8;", "OpenJob resync = 8;", []string{"internode.proto:", "message OpenJob has no struct"}},
		{"raylet/internode/internode.proto", "map<string, string> labels = 6;", "map<string, uint32> labels = 6;", []string{"internode.proto:LINE", "labels"}},
		{"raylet/internode/internode.proto", "    Ask ask = 8;\n", "", []string{"msg.go:", "Ask", "sched.Held", "internode.proto"}},
		{"objectstore/msg.go", "type Unsealed struct {\n", "type Unsealed struct {\n\tMore bool\n", []string{"msg.go:", "More", "objectstore.Unsealed", "internode.proto"}},
	} {
		root := edited(t, c.file, c.old, c.with)
		data, err := os.ReadFile(filepath.Join(moduleRoot, c.file))
		if err != nil {
			t.Fatal(err)
		}
		before, _, _ := strings.Cut(string(data), c.old)
		line := strconv.Itoa(1 + strings.Count(before, "\n"))
		err = run(root, true)
		for _, w := range c.words {
			w = strings.ReplaceAll(w, "LINE", line)
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s for %s: got %v, want %q in it", c.with, c.old, err, w)
			}
		}
	}
}

func TestGoNamesAsASchemaWritesThem(t *testing.T) {
	for name, want := range map[string]string{
		"ID": "id", "IDs": "ids", "PID": "pid", "MinVersion": "min_version", "TraceID": "trace_id", "JobDir": "job_dir", "OptsNo": "opts_no",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
