package wire

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"mobula/internal/errs"
	"mobula/wire/pb"
)

// FuzzFrames feeds any bytes to the frame reader: it never panics, and what it allocates
// is bounded by what came, not by what was announced.
func FuzzFrames(f *testing.F) {
	src := seeded(1)
	for k := Kind(1); k < kindEnd; k++ {
		f.Add(rawFrame(f, drawMsg(src, k), drawMsg(src, k)), uint16(1<<15))
	}
	f.Add(rawFrame(f, putValue(66_000, 1)), uint16(100))
	f.Add([]byte{'M', 'b', 1, 0, 0xff, 0xff, 0xff, 0xff}, uint16(1))
	f.Add([]byte{'M', 'b', 1, 1, 0, 0, 0, 4}, uint16(9))
	f.Fuzz(func(t *testing.T, data []byte, step uint16) {
		if len(data) > 1<<20 {
			return
		}
		var msgs []Msg
		var err error
		used := allocated(func() { msgs, err = receive(data, max(int(step)+1, len(data)/64)) })
		if err != nil && !isErr(err, errs.ErrProtocol) {
			t.Fatalf("%v is no protocol error", err)
		}
		// Even empty messages have a struct each; a large frame has one message.
		if most := uint64(128*len(data)) + 4*bigStart; used > most {
			t.Fatalf("%d bytes made the reader allocate %d, more than %d", len(data), used, most)
		}
		again, err2 := receive(data, 1<<20)
		if !reflect.DeepEqual(msgs, again) || (err == nil) != (err2 == nil) {
			t.Fatalf("reads of %d bytes give %d messages and %v, one read %d and %v", int(step)+1, len(msgs), err, len(again), err2)
		}
	})
}

// FuzzDecode feeds any bytes to every decoder: no panic, bounded memory; and what is
// accepted comes back the same from its own encoding, which the generated code accepts.
func FuzzDecode(f *testing.F) {
	src := seeded(2)
	for k := Kind(1); k < kindEnd; k++ {
		for range 3 {
			f.Add(byte(k), Append(nil, drawMsg(src, k)))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		k := Kind(kind)
		var m Msg
		var err error
		used := allocated(func() { m, err = Decode(k, data) })
		if most := uint64(2*(maxAmplification+2)*len(data)) + 4*freeAmplified; used > most {
			t.Fatalf("%d bytes of %v made the decoder allocate %d, more than %d", len(data), k, used, most)
		}
		if err != nil {
			if m != nil || !isErr(err, errs.ErrProtocol) {
				t.Fatalf("%v came with %v", m, err)
			}
			return
		}
		enc := Append(nil, m)
		again, err := Decode(k, enc)
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%v: %+v comes back from its own encoding as %+v, %v", k, m, again, err)
		}
		if err := proto.Unmarshal(enc, newPB(t, k).Interface()); err != nil {
			t.Fatalf("%v: the generated code refuses %x: %v", k, enc, err)
		}
	})
}

// FuzzError is FuzzDecode for an error by itself.
func FuzzError(f *testing.F) {
	f.Add(AppendError(nil, &errs.Error{Code: 1, Msg: "a", Stack: "b", Cause: []*errs.Error{{Name: "c"}}}))
	f.Add([]byte{0x32, 0, 0x32, 2, 0x32, 0})
	f.Add([]byte{0x3a, 0}) // data that is there and empty
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := ParseError(data)
		if err != nil {
			return
		}
		if depth, count := measure(x, 0); depth > maxErrDepth || count > maxErrCauses {
			t.Fatalf("%d deep, %d in all", depth, count)
		}
		_ = x.Error()
		enc := AppendError(nil, x)
		again, err := ParseError(enc)
		if err != nil {
			t.Fatalf("our own encoding is refused: %v", err)
		}
		if len(data) < maxErrName && !reflect.DeepEqual(again, x) { // else texts may be cut
			t.Fatalf("%+v comes back as %+v", x, again)
		}
		if err := proto.Unmarshal(enc, new(pb.Error)); err != nil {
			t.Fatalf("the generated code refuses %x: %v", enc, err)
		}
	})
}
