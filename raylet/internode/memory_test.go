package internode

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}

// most is the bound of what decoding a payload allocates: even what is empty has a struct, and lists of the local protocol may grow once.
func most(payload []byte) uint64 { return uint64(256*len(payload)) + 256<<10 }

// FuzzDecode feeds any bytes to the decoder: no panic, bounded memory; and what is accepted comes back the same from its own encoding.
func FuzzDecode(f *testing.F) {
	s := seeded(2)
	for k := Kind(1); k < kindEnd; k++ {
		for _, inside := range insidesOf(k) {
			f.Add(encode(f, drawMsg(s, k, inside), drawMsg(s, k, inside)))
		}
	}
	f.Add(message(KindReport, inside(1, inside(9), inside(9), inside(9))))
	f.Fuzz(func(t *testing.T, data []byte) {
		var msgs []Msg
		var err error
		if used := allocated(func() { msgs, err = decode(data) }); used > most(data) {
			t.Fatalf("%d bytes made the decoder allocate %d, more than %d", len(data), used, most(data))
		}
		if err != nil && !errors.Is(err, errs.ErrProtocol) {
			t.Fatalf("%v is no protocol error", err)
		}
		if len(data) > 1<<10 { // a text of an error may be cut
			return
		}
		if again, err := decode(encode(t, msgs...)); err != nil || !reflect.DeepEqual(again, msgs) {
			t.Fatalf("%+v comes back from its own encoding as %+v, %v", msgs, again, err)
		}
	})
}

// Lists of empty elements, two bytes each, take no more memory than there is room for by that bound.
func TestEmptyElementsTakeBoundedMemory(t *testing.T) {
	const n = 50_000
	list := func(number int, around ...int) []byte {
		b := bytes.Repeat(inside(number), n)
		for _, outer := range around {
			b = inside(outer, b)
		}
		return b
	}
	for name, payload := range map[string][]byte{
		"clients":  list(2, int(KindToClients)),
		"messages": list(int(wire.KindWelcome), 2, 2, int(KindFromClients)),
		"wants":    list(4, 11, int(KindToSched)),
		"options":  list(2, 2, int(KindToSched)),
		"backlogs": list(9, 1, int(KindReport)),
		"labels":   list(6, 1, int(KindReport)),
		"sealed":   list(2, 7, int(KindFromStore)),
		"programs": list(4, int(KindOpenJob)),
		"errors":   list(2, int(KindCloseJob)),
		"reports":  list(int(KindReport)),
	} {
		if used := allocated(func() {
			if err := new(Decoder).Decode(payload, func(Msg) error { return nil }); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}); used > most(payload) {
			t.Errorf("%s: %d bytes took %d, more than %d", name, len(payload), used, most(payload))
		}
	}
}

// A payload may be overwritten once its messages are there.
func TestMessagesShareNothingWithThePayload(t *testing.T) {
	s := seeded(9)
	for range 50 {
		want := []Msg{draw(s), &Report{}, draw(s), draw(s)}
		payload := encode(t, want...)
		var got []Msg
		if err := new(Decoder).Decode(payload, func(m Msg) error { got = append(got, m); return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range payload {
			payload[i] = 0xff
		}
		if !reflect.DeepEqual(readable(t, got...), want) {
			t.Fatalf("overwriting the payload changed its messages to %+v, want %+v", got, want)
		}
	}
}

func TestALargeValueIsCopiedOnce(t *testing.T) {
	id := ids.RootTask(7, 1)
	done := &wire.Done{Task: id, Results: []wire.Result{{Kind: wire.ResultInline, Value: wire.Value{Data: make([]byte, 1<<20)}}}}
	payload := encode(t, &FromClients{Job: 7, Items: []ClientMsgs{{Client: 3, Msgs: []wire.Msg{&wire.Get{ID: id.Return(0)}, done}}}})
	if used := allocated(func() {
		if err := new(Decoder).Decode(payload, func(Msg) error { return nil }); err != nil {
			t.Error(err)
		}
	}); used > 1<<20+64<<10 {
		t.Errorf("decoding a value of 1 MiB took %d bytes", used)
	}
}
