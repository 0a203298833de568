package shell

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"mobula/internal/errs"
)

func appendFrame(b []byte, f frame) []byte { return append(f.appendHead(b), f.body...) }

// cut cuts bytes into frames, given to the decoder in pieces of a size.
func cut(d *decoder, b []byte, piece int) (out []frame, err error) {
	for {
		for {
			f, ok, err := d.next()
			if err != nil {
				return out, err
			}
			if !ok {
				break
			}
			f.body = bytes.Clone(f.body)
			out = append(out, f)
		}
		if len(b) == 0 {
			return out, d.ended()
		}
		room := d.room()
		n := copy(room[:min(piece, len(room))], b)
		d.put(n)
		b = b[n:]
	}
}

func TestFrames(t *testing.T) {
	large := bytes.Repeat([]byte("large"), 100_000)
	want := []frame{
		{kind: kindHello, body: []byte("hello")}, {kind: kindUse, body: []byte{}}, {kind: kindAck, number: 1 << 60},
		{kind: kindMessage, number: 1, body: []byte("x")}, {kind: kindMessage, number: 2, body: large}, {kind: kindMessage, number: 3, body: []byte("y")},
	}
	var b []byte
	for _, f := range want {
		before := len(b)
		if b = appendFrame(b, f); len(b)-before != f.size() {
			t.Errorf("kind %d: %d bytes, size says %d", f.kind, len(b)-before, f.size())
		}
	}
	for _, piece := range []int{1, 7, 4096, 1 << 20} {
		d := newDecoder(len(large) + numberSize)
		got, err := cut(d, b, piece)
		if err != io.EOF || len(got) != len(want) {
			t.Fatalf("in pieces of %d: %d frames, %v", piece, len(got), err)
		}
		for i, f := range got {
			if f.kind != want[i].kind || f.number != want[i].number || !bytes.Equal(f.body, want[i].body) {
				t.Errorf("in pieces of %d: frame %d is of kind %d, number %d, %d bytes", piece, i, f.kind, f.number, len(f.body))
			}
		}
		if d.room(); len(d.buf) != readBuffer {
			t.Errorf("the buffer of a very large frame is kept: %d bytes", len(d.buf))
		}
	}
	if _, err := cut(newDecoder(len(large)), b, 1<<20); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("a frame beyond the limit: %v", err)
	}
	if _, err := cut(newDecoder(len(large)+numberSize), b[:len(b)-1], 1<<20); !errors.Is(err, errs.ErrProtocol) {
		t.Errorf("half a frame: %v", err)
	}
}

// The buffer of a large frame is kept for the next one, for a while.
func TestABufferIsUsedAgain(t *testing.T) {
	d := newDecoder(1 << 20)
	large, small := appendFrame(nil, frame{kind: kindMessage, number: 1, body: make([]byte, 100_000)}), appendFrame(nil, frame{kind: kindUse})
	frames := func(b []byte) (same bool) {
		before := cap(d.buf)
		if _, err := cut(d, b, 1<<20); err != io.EOF {
			t.Fatal(err)
		}
		d.room()
		return cap(d.buf) == before
	}
	frames(large)
	for range 10 {
		for range keepFor / 4 { // each empties it twice
			if !frames(small) {
				t.Fatal("the buffer is given up")
			}
		}
		if !frames(large) {
			t.Fatal("the buffer was given up")
		}
	}
	for range keepFor {
		frames(small)
	}
	if len(d.buf) != readBuffer {
		t.Errorf("the buffer is kept: %d bytes", len(d.buf))
	}
}

// Of what a frame announces no more is allocated than twice what has come.
func TestASizeIsNotBelieved(t *testing.T) {
	d := newDecoder(1 << 30)
	b := append([]byte{0, 0, 0, 0x3f, kindMessage}, make([]byte, 100_000)...)
	if _, err := cut(d, b, 1<<20); !errors.Is(err, errs.ErrProtocol) || len(d.buf) > 2*len(b) {
		t.Errorf("a buffer of %d bytes, %v", len(d.buf), err)
	}
}

// Whatever comes, in whatever pieces: the same frames come out, they are those that were put in, and the buffer stays within twice the input.
func FuzzDecoder(f *testing.F) {
	var b []byte
	for _, x := range []frame{{kind: kindHello, body: []byte("hello")}, {kind: kindUse}, {kind: kindMessage, number: 1, body: []byte("x")}, {kind: kindAck, number: 9}} {
		b = appendFrame(b, x)
		f.Add(b, 3)
		f.Add(b[:len(b)-1], 100)
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 5)
	f.Fuzz(func(t *testing.T, b []byte, piece int) {
		d := newDecoder(1 << 20)
		got, err := cut(d, b, max(piece, 1))
		if len(d.buf) > max(readBuffer, 2*len(b)) {
			t.Fatalf("%d bytes of input, a buffer of %d", len(b), len(d.buf))
		}
		again, errAgain := cut(newDecoder(1<<20), b, 1<<30)
		if len(got) != len(again) || (err == io.EOF) != (errAgain == io.EOF) {
			t.Fatalf("%d frames and %v in pieces, %d and %v at once", len(got), err, len(again), errAgain)
		}
		var out []byte
		for i := range got {
			out = appendFrame(out, got[i])
			if got[i].kind == kindHello {
				_, _ = decodeHello(got[i].body)
			}
		}
		if !bytes.HasPrefix(b, out) || err == io.EOF && len(out) != len(b) {
			t.Fatalf("%q came out of %q", out, b)
		}
	})
}
