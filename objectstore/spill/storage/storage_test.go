package storage

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"unsafe"

	"mobula/objectstore/spill/format"
)

func init() {
	none := func(context.Context, *url.URL, Options) (Storage, error) { return nil, nil }
	Register("file", none)
	Register("here", none)
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{"/a/b": "file:///a/b", "file:///a": "file:///a", "here://h/p?x=1": "here://h/p?x=1", "/odd %2f?": "file:///odd%20%252f%3F"} {
		if u, err := Parse(in); err != nil || u.String() != want {
			t.Errorf("Parse(%q) = %v, %v; want %s", in, u, err, want)
		}
	}
	for in, want := range map[string]string{"": "absolute path", "a/b": "absolute path", "nowhere://x": "file://, here://", "s3://bucket/a": `import _ "mobula/objectstore/spill/s3"`, "file://host/a": "file:///absolute", "file://": "file:///absolute", "here://%zz": "spill target"} {
		if u, err := Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, %v; want an error with %q", in, u, err, want)
		}
	}
	if _, err := Parse("nowhere://user:secret@x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an error shows the password: %v", err)
	}
	if _, err := Open(context.Background(), &url.URL{Scheme: "nowhere"}, Options{}); err == nil {
		t.Error("a scheme that nobody registered was opened")
	}
}

func TestRegisterTwicePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Register("here", nil)
}

func TestBuffers(t *testing.T) {
	b := NewBuffers(1)
	p, q := b.Get(), b.Get()
	for _, x := range [][]byte{p, q} {
		if len(x) != format.BatchBytes || uintptr(unsafe.Pointer(&x[0]))%format.Page != 0 {
			t.Errorf("buffer of %d bytes at %p", len(x), x)
		}
		x[0], x[len(x)-1] = 1, 1
	}
	if b.Lent() != 2 {
		t.Errorf("%d are lent", b.Lent())
	}
	b.Put(p)
	b.Put(q) // one too many: unmapped
	if len(b.free) != 1 || b.Lent() != 0 {
		t.Errorf("%d are kept, %d lent", len(b.free), b.Lent())
	}
	if again := b.Get(); &again[0] != &p[0] {
		t.Error("the kept buffer is not used again")
	} else {
		b.Put(again)
	}
	b.Put(make([]byte, format.BatchBytes)) // from the heap: not unmapped, not kept
	b.Trim()
	if len(b.free) != 0 {
		t.Errorf("%d are kept after Trim", len(b.free))
	}
}
