package wire

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// An Encoder writes what stands behind the header of a frame, and Messages reads it.
func TestMessagesOutsideFrames(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		s := rapidSource{rt}
		want := make([]Msg, 1+s.upTo(3))
		var e Encoder
		b := []byte("before")
		for i := range want {
			want[i] = drawMsg(s, Kind(1+s.upTo(int(kindEnd)-2)))
			var err error
			if b, err = e.Append(b, want[i]); err != nil {
				rt.Fatal(err)
			}
		}
		payload := b[len("before"):]
		if frame := rawFrame(t, want...); len(payload) < frameTarget && !bytes.Equal(payload, frame[headerSize:]) {
			rt.Fatalf("%x, in a frame %x", payload, frame[headerSize:])
		}
		got, err := new(Decoder).Messages(nil, payload)
		if err != nil || !reflect.DeepEqual(got, want) || cap(got) > 2*len(want) {
			rt.Fatalf("read %+v (%v), wrote %+v", got, err, want)
		}
	})
}

func TestBadMessagesOutsideFrames(t *testing.T) {
	var e Encoder
	before, _ := e.Append(nil, &Drain{})
	for _, m := range []Msg{nil, &PutValue{ID: ids.RootTask(1, 1).Put(1), Value: Value{Meta: make([]byte, MaxMeta+1)}}} {
		if b, err := e.Append(before, m); !isErr(err, errs.ErrInvalid) || !bytes.Equal(b, before) {
			t.Errorf("%v is written as %x, %v", m, b, err)
		}
	}
	for _, c := range []struct {
		data []byte
		kind error
		word string
	}{
		{append(bytes.Clone(before), tagged(kindEnd, nil)...), errs.ErrVersion, "unknown to protocol version"},
		{append(bytes.Clone(before), 0x80), errs.ErrProtocol, "no message starts at byte 3 of 4"},
		{append(bytes.Clone(before), byte(KindGet)<<3|2), errs.ErrProtocol, "byte 4 of 4"},
		{tagged(KindGet, []byte{1<<3 | 2, 1, 2}), errs.ErrProtocol, "id of 1 bytes"},
	} {
		got, err := new(Decoder).Messages(nil, c.data)
		wantErr(t, err, c.kind, c.word)
		if got != nil {
			t.Errorf("%x: messages came with %v", c.data, err)
		}
	}
}
