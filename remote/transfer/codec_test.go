package transfer

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"mobula/internal/ids"
)

var frames = []Frame{
	Pull{Token: 7, Object: Object{ids.RootTask(5, 1).Put(3), 2}, Size: 5 * mib, Offset: mib, Limit: 3 * mib, More: true},
	Pull{Token: 1 << 63, Object: thing, Size: 1, Limit: 1, Must: true},
	Credit{Token: 7, Limit: 4 * mib},
	Chunk{Token: 7, Offset: 2 * mib, Size: 4711, Sum: 0xdeadbeef},
	Alive{},
	Refused{Token: 7, Reason: Missing},
	Refused{Token: 7, Reason: Busy, Others: []ids.Home{3, 1 << 20}},
}

// decode reads one frame, and gives what is left.
func decode(b []byte) (Frame, []byte, error) {
	if len(b) < HeadSize {
		return nil, nil, ErrProtocol
	}
	h, err := DecodeHead(b)
	if err != nil {
		return nil, nil, err
	}
	if b = b[HeadSize:]; len(b) < h.Body {
		return nil, nil, ErrProtocol
	}
	f, err := h.Decode(b[:h.Body])
	return f, b[h.Body:], err
}

func TestFramesAreReadAsTheyWereWritten(t *testing.T) {
	for _, f := range frames {
		got, rest, err := decode(Append(nil, f))
		if err != nil || len(rest) != 0 || !reflect.DeepEqual(got, f) {
			t.Errorf("%+v is read as %+v, %d bytes left, %v", f, got, len(rest), err)
		}
	}
}

func TestWhatIsNoFrame(t *testing.T) {
	for _, f := range []Frame{
		Pull{Token: 1, Object: thing, Size: mib, Offset: 1},
		Pull{Token: 1, Object: thing, Size: mib, Offset: mib},
		Pull{Token: 1, Object: thing, Size: mib, Offset: -mib},
		Pull{Token: 1, Object: thing},
		Chunk{Token: 1, Size: mib + 1},
		Chunk{Token: 1},
		Chunk{Token: 1, Size: 1, Offset: 5},
		Refused{Token: 1},
		Refused{Token: 1, Reason: Failed + 1},
	} {
		if got, _, err := decode(Append(nil, f)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%+v is read as %+v, %v", f, got, err)
		}
	}
	for _, b := range [][]byte{{0, 0, 0, 0, 0, 0, 0, 0}, {4, 1, 0, 0, 0, 0, 0, 0}, {9, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 255, 255, 255, 255}, []byte("GET / HTTP/1.1")} {
		if f, _, err := decode(b); !errors.Is(err, ErrProtocol) {
			t.Errorf("%x is read as %+v, %v", b, f, err)
		}
	}
}

// What is read is written again in the same way.
func FuzzDecode(f *testing.F) {
	for _, fr := range frames {
		f.Add(Append(nil, fr))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, rest, err := decode(b)
		if err != nil {
			if !errors.Is(err, ErrProtocol) {
				t.Errorf("%x: %v", b, err)
			}
			return
		}
		if again := Append(nil, fr); !bytes.Equal(again, b[:len(b)-len(rest)]) {
			t.Errorf("%x is read as %+v, which is written as %x", b, fr, again)
		}
	})
}
