package wire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"mobula/internal/ids"
)

// randSource draws from a generator whose sequence is fixed for a seed.
type randSource struct{ r *rand.Rand }

func seeded(seed uint64) randSource { return randSource{rand.New(rand.NewPCG(seed, 7))} }

func (s randSource) upTo(n int) int { return s.r.IntN(n + 1) }

// wantErr checks an error's kind and that its text has all the words.
func wantErr(t testing.TB, err, kind error, words ...string) {
	t.Helper()
	if err == nil || !isErr(err, kind) {
		t.Fatalf("got %v, want an error that is %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
}

func putValue(size int, fill byte) *PutValue {
	return &PutValue{ID: ids.RootTask(1, uint64(fill)).Put(1), Value: Value{Meta: []byte("raw"), Data: bytes.Repeat([]byte{fill}, size)}}
}

// rawFrame is a frame of these messages.
func rawFrame(t testing.TB, msgs ...Msg) []byte {
	t.Helper()
	o := new(FrameWriter)
	for _, m := range msgs {
		if err := o.add(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	return joined(o.Parts(nil))
}

func joined(parts []Part) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p.Data...)
	}
	return out
}

// receive feeds data to a receiver as if it came from a socket, at most step bytes a
// read, then the end of the stream.
func receive(data []byte, step int) (msgs []Msg, err error) {
	x := &FrameReader{Limit: MaxFrame}
	defer x.Release()
	for {
		batch, err := x.Next()
		if msgs = append(msgs, batch...); err != nil {
			return msgs, err
		}
		dst := x.Room()
		n := copy(dst[:min(step, len(dst))], data)
		if n == 0 {
			if err = x.Ended(); err == io.EOF {
				err = nil
			}
			return msgs, err
		}
		data = data[n:]
		x.Put(n)
	}
}
