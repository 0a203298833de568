package format

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// heap lends page-aligned memory and counts what is out.
type heap struct{ out int }

func (h *heap) Get() []byte {
	h.out++
	b := pages(BatchBytes, 0)
	for i := range b {
		b[i] = 0xee // a pad that is not cleared shows
	}
	return b
}

func (h *heap) Put([]byte) { h.out-- }

// pages is memory that starts shift bytes after a page.
func pages(n, shift int) []byte {
	b := make([]byte, n+2*Page)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (Page - 1))
	return b[skip+shift:][:n:n]
}

func objects(sizes []int, shift int) []Object {
	r := rand.New(rand.NewPCG(1, uint64(len(sizes))))
	out := make([]Object, len(sizes))
	for i, n := range sizes {
		data := pages(n, shift)
		for j := 0; j < n; j += 8 {
			data[j] = byte(r.Uint32())
		}
		out[i] = Object{ID: ids.Derive(ids.RootTask(1, 2), uint64(i)).Return(i), Attempt: uint32(i % 3), Data: data}
	}
	return out
}

// collect checks every batch's form and joins them.
func collect(t interface{ Fatalf(string, ...any) }, s *Stream) []byte {
	var out []byte
	for b := s.Next(); b != nil; b = s.Next() {
		if b.Off != uint64(len(out)) || b.Len > BatchBytes {
			t.Fatalf("batch at %d has %d bytes, the file had %d", b.Off, b.Len, len(out))
		}
		sum := 0
		for _, p := range b.Pieces {
			if len(p)%Page != 0 || len(p) == 0 || !aligned(p) {
				t.Fatalf("piece of %d bytes at %p is not fit for direct I/O", len(p), p)
			}
			sum += len(p)
			out = append(out, p...)
		}
		if sum != b.Len {
			t.Fatalf("batch says %d bytes, has %d", b.Len, sum)
		}
		b.Free()
	}
	if uint64(len(out)) != s.Size() {
		t.Fatalf("stream made %d bytes, announced %d", len(out), s.Size())
	}
	return out
}

func check(t interface{ Fatalf(string, ...any) }, file []byte, want Header, objs []Object) {
	h, err := DecodeHeader(file)
	if err != nil {
		t.Fatalf("header: %v", err)
	}
	if h.Session != want.Session || h.Target != want.Target || h.File != want.File || int(h.Count) != len(objs) || h.Size != uint64(len(file)) {
		t.Fatalf("header is %+v, want %+v with %d objects in %d bytes", h, want, len(objs), len(file))
	}
	entries, err := DecodeIndex(file[h.IndexOff:], h)
	if err != nil {
		t.Fatalf("index: %v", err)
	}
	end := uint64(Page)
	for i, e := range entries {
		o := objs[i]
		if e.ID != o.ID || e.Attempt != o.Attempt || e.Size != uint64(len(o.Data)) || e.Off < end || e.CRC != Checksum(o.Data) {
			t.Fatalf("entry %d is %+v, want %v attempt %d size %d crc %08x after %d", i, e, o.ID, o.Attempt, len(o.Data), Checksum(o.Data), end)
		}
		if e.Size >= Large && e.Off%Page != 0 {
			t.Fatalf("large object %d starts at %d, not on a page", i, e.Off)
		}
		if !bytes.Equal(file[e.Off:e.Off+e.Size], o.Data) {
			t.Fatalf("object %d differs", i)
		}
		end = e.Off + e.Size
	}
	if bytes.Contains(file[end:Align(end, smallAlign)], []byte{0xee}) {
		t.Fatalf("padding is not zero")
	}
}

func TestStreamMakesTheFileThatTheIndexDescribes(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 300), rapid.IntRange(Large-2, Large+2), rapid.IntRange(4000, 4200),
			rapid.IntRange(BatchBytes-3*Page, BatchBytes+2*Page), rapid.SampledFrom([]int{0, Page, Large, BatchBytes, 2*BatchBytes + 1}))
		objs := objects(rapid.SliceOfN(size, 0, 4).Draw(t, "sizes"), rapid.SampledFrom([]int{0, 0, 64, 1}).Draw(t, "shift"))
		want := Header{Session: "n1", Target: 3, File: 99}
		mem := &heap{}
		s := NewStream(want, objs, mem)
		file := collect(t, s)
		check(t, file, want, objs)
		s.Rewind()
		if again := collect(t, s); !bytes.Equal(again, file) {
			t.Fatalf("a rewound stream makes another file")
		}
		var least uint64
		copies := slices.Clone(objs)
		for i, o := range objs {
			least += Footprint(o.Len())
			if rapid.Bool().Draw(t, "copied") {
				copies[i].Data, copies[i].Copy = nil, &Copy{Size: o.Len(), CRC: Checksum(o.Data)}
			}
		}
		s = NewStream(want, copies, mem)
		s.ReadWith(func(n int, off uint64, p []byte) error {
			copy(p, objs[n].Data[off:])
			return nil
		})
		if again := collect(t, s); s.Err() != nil || !bytes.Equal(again, file) {
			t.Fatalf("with copies it is another file: %v", s.Err())
		}
		if s.Size() > least+Overhead {
			t.Fatalf("a file of %d bytes, the footprints are %d", s.Size(), least)
		}
		if mem.out != 0 {
			t.Fatalf("%d buffers were not given back", mem.out)
		}
	})
}

func TestAStreamEndsWhereACopyCannotBeRead(t *testing.T) {
	away := errors.New("away")
	for _, c := range []struct {
		read error
		want error
	}{{away, away}, {nil, ErrChanged}} {
		mem := &heap{}
		s := NewStream(Header{Session: "n"}, []Object{{Data: make([]byte, 100)}, {Copy: &Copy{Size: 5 << 20, CRC: 1}}}, mem)
		s.ReadWith(func(int, uint64, []byte) error { return c.read })
		for b := s.Next(); b != nil; b = s.Next() {
			b.Free()
		}
		if !errors.Is(s.Err(), c.want) || s.Next() != nil || mem.out != 0 {
			t.Errorf("the stream ends with %v, want %v; %d buffers are lent", s.Err(), c.want, mem.out)
		}
	}
}

func TestLargeObjectsAreNotCopied(t *testing.T) {
	objs := objects([]int{100, 3 << 20, Large}, 0)
	b := NewStream(Header{Session: "n"}, objs, &heap{}).Next()
	found := 0
	for _, p := range b.Pieces {
		if &p[0] == &objs[1].Data[0] || &p[0] == &objs[2].Data[0] {
			found++
		}
	}
	if found != 2 {
		t.Fatalf("%d of 2 large objects are pieces of the batch themselves", found)
	}
}

func TestDecodersNameWhatIsWrong(t *testing.T) {
	objs := objects([]int{100, 200}, 0)
	file := collect(t, NewStream(Header{Session: "n"}, objs, &heap{}))
	h, err := DecodeHeader(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at   int
		want string
	}{{0, "header starts with"}, {20, "header's checksum"}, {headerLen - 1, "header's checksum"}} {
		bad := bytes.Clone(file[:Page])
		bad[c.at] ^= 1
		if _, err := DecodeHeader(bad); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("byte %d flipped: got %v, want %q", c.at, err, c.want)
		}
	}
	index := file[h.IndexOff:]
	for _, c := range []struct {
		at   int
		want string
	}{{0, "index's checksum"}, {int(h.IndexLen()) - 1, "index ends with"}} {
		bad := bytes.Clone(index)
		bad[c.at] ^= 1
		if _, err := DecodeIndex(bad, h); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("byte %d of the index flipped: got %v, want %q", c.at, err, c.want)
		}
	}
	if _, err := DecodeIndex(index[:h.IndexLen()-1], h); !errors.Is(err, ErrFormat) {
		t.Errorf("short index: %v", err)
	}
	if _, err := DecodeHeader(file[:headerLen-1]); !errors.Is(err, ErrFormat) {
		t.Errorf("short header: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	file := collect(f, NewStream(Header{Session: "node", Target: 1, File: 7}, objects([]int{10, 70000, 0}, 0), &heap{}))
	h, err := DecodeHeader(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file[:Page], file[h.IndexOff:])
	f.Add(AppendHeader(nil, Header{Session: "x", IndexOff: Page, Size: 2 * Page, Count: 1}), AppendIndex(nil, []Entry{{Off: 1 << 63, Size: 1 << 63}}))
	f.Add([]byte(magic), []byte(endMark))
	f.Fuzz(func(t *testing.T, head, index []byte) {
		h, err := DecodeHeader(head)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		entries, err := DecodeIndex(index, h)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		for _, e := range entries {
			if e.Off+e.Size < e.Off || e.Off+e.Size > h.IndexOff || h.IndexOff > h.Size {
				t.Fatalf("entry %+v lies outside %+v", e, h)
			}
		}
		if again := AppendIndex(nil, entries); !bytes.Equal(again, index[:len(again)]) {
			t.Fatalf("index does not round-trip")
		}
	})
}

func BenchmarkStream(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
		size int
	}{{"small-1KiB", 2000, 1 << 10}, {"100KB", 1000, 100_000}, {"1MiB", 100, 1 << 20}} {
		b.Run(c.name, func(b *testing.B) {
			sizes := make([]int, c.n)
			for i := range sizes {
				sizes[i] = c.size
			}
			objs := objects(sizes, 0)
			buf := pages(BatchBytes, 0)
			b.SetBytes(int64(c.n * c.size))
			b.ReportAllocs()
			for b.Loop() {
				s := NewStream(Header{Session: "n"}, objs, fixed(buf))
				for x := s.Next(); x != nil; x = s.Next() {
					x.Free()
				}
			}
		})
	}
}

type fixed []byte

func (f fixed) Get() []byte { return f }
func (f fixed) Put([]byte)  {}
