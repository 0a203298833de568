package wire

import (
	"fmt"
	"reflect"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

func TestMalformedMessages(t *testing.T) {
	task := ids.RootTask(1, 1)
	var e encoder
	e.task(1, task)
	id := e.b
	opts := []byte{4<<3 | 2, 0}
	spec := func(fields ...[]byte) []byte {
		var b []byte
		for _, f := range fields {
			b = append(b, f...)
		}
		return append([]byte{1<<3 | 2, byte(len(b))}, b...)
	}
	for _, c := range []struct {
		name  string
		kind  Kind
		data  []byte
		words []string
	}{
		{"truncated tag", KindGet, []byte{0x80}, []string{"Get at byte 0 of 1"}},
		{"field 0", KindGet, []byte{0x02, 0}, []string{"field number 0"}},
		{"truncated number", KindGet, append(id[:0:0], 2<<3, 0x80), []string{"field 2"}},
		{"truncated bytes", KindGet, []byte{1<<3 | 2, 20, 1, 2}, []string{"byte 2 of 4", "announces 20 bytes, 2 are left"}},
		{"length beyond all", KindGet, []byte{1<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []string{"announces 18446744073709551615"}},
		{"short id", KindGet, []byte{1<<3 | 2, 3, 1, 2, 3}, []string{"id of 3 bytes, want 24"}},
		{"object id for a task", KindCancel, append([]byte{1<<3 | 2, objectSize}, make([]byte, objectSize)...), []string{"id of 24 bytes, want 20"}},
		{"short fixed number", KindHello, []byte{7<<3 | 2, 3, 2<<3 | 1, 1, 2}, []string{"2 bytes where 8"}},
		{"unknown role", KindHello, []byte{3 << 3, 4}, []string{"unknown value 4"}},
		{"unknown component", KindResync, []byte{1 << 3, 3}, []string{"unknown value 3"}},
		{"unknown result kind", KindStreamItem, []byte{4<<3 | 2, 2, 1 << 3, 9}, []string{"unknown value 9"}},
		{"unknown task kind", KindSubmit, spec(opts, []byte{3 << 3, 3}), []string{"unknown value 3"}},
		{"no spec", KindSubmit, nil, []string{"Submit", "no spec"}},
		{"empty spec", KindSubmit, spec(), []string{"empty task spec"}},
		{"no options", KindSubmit, spec(id), []string{"without options"}},
		{"task without spec", KindExec, []byte{2<<3 | 2, 2, 2 << 3, 1}, []string{"without a spec"}},
		{"argument out of range", KindExec, append([]byte{2<<3 | 2, 8}, append(spec(opts), 3<<3|2, 2, 1<<3, 5)...), []string{"argument 5 of 0"}},
		{"not UTF-8", KindRequest, []byte{2<<3 | 2, 2, 0xff, 0xfe}, []string{"not UTF-8"}},
		{"long meta", KindPutValue, Append(nil, &PutValue{Value: Value{Meta: make([]byte, MaxMeta+1)}}), []string{"Meta of 4097"}},
		{"unclosed group", KindDrain, []byte{5<<3 | 3, 1 << 3, 1}, []string{"Drain"}},
		{"bad trace id", KindRequest, []byte{4<<3 | 2, 3, 1<<3 | 2, 1, 7}, []string{"id of 1 bytes, want 16"}},
		{"bad span id", KindRequest, []byte{4<<3 | 2, 3, 2<<3 | 2, 1, 7}, []string{"id of 1 bytes, want 8"}},
		{"call of no spec", KindAdopt, nil, []string{"Adopt without spec"}},
		{"ended call of no spec", KindEndedCalls, []byte{2<<3 | 2, 2, 3 << 3, 1}, []string{"EndedCall without spec"}},
		{"ended calls of no function", KindEndedCalls, []byte{1<<3 | 2, 2, 2 << 3, 1}, []string{"EndedCount without opts"}},
		{"method without options", KindMethod, nil, []string{"Method without opts"}},
		{"unknown end", KindOver, []byte{3 << 3, 3}, []string{"unknown value 3"}},
		{"unknown word", KindTold, []byte{4 << 3, 4}, []string{"unknown value 4"}},
		{"kind 0", 0, nil, []string{"kind 0"}},
		{"later kind", kindEnd, nil, []string{"unknown", fmt.Sprintf("version %d", Version)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Decode(c.kind, c.data)
			wantErr(t, err, errs.ErrProtocol, c.words...)
			if m != nil {
				t.Errorf("a message came with the error: %+v", m)
			}
		})
	}
}

func TestTruncationIsNeverAPanicNorAnotherMessage(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind) {
		src := seeded(uint64(k))
		for range 30 {
			m := drawMsg(src, k)
			data := Append(nil, m)
			for n := range min(len(data), 400) {
				got, err := Decode(k, data[:n])
				if err == nil && reflect.DeepEqual(got, m) {
					t.Fatalf("%d of %d bytes read as the whole message", n, len(data))
				}
				if err != nil && !isErr(err, errs.ErrProtocol) {
					t.Fatalf("%d of %d bytes: %v is no protocol error", n, len(data), err)
				}
			}
		}
	})
}

func TestListsOfEmptyElementsAreRefused(t *testing.T) {
	pairs := func(tag byte, n int) []byte {
		b := make([]byte, 0, 2*n)
		for range n {
			b = append(b, tag, 0)
		}
		return b
	}
	const n = 100_000
	for _, c := range []struct {
		kind Kind
		data []byte
	}{
		{KindDone, pairs(4<<3|2, n)},
		{KindSubmit, append([]byte{1<<3 | 2, 0xc0, 0x9a, 0x0c}, pairs(5<<3|2, n)...)},
	} {
		_, err := Decode(c.kind, c.data)
		wantErr(t, err, errs.ErrProtocol, "list elements")
		if got := allocated(func() { _, _ = Decode(c.kind, c.data) }); got > 1<<20 {
			t.Errorf("refusing a %v of %d bytes took %d bytes", c.kind, len(c.data), got)
		}
	}
}

// An honest message with many small parts must not be taken for an attack.
func TestManySmallArgumentsAreFine(t *testing.T) {
	s := &TaskSpec{ID: ids.RootTask(1, 1), Opts: &TaskOptions{Func: "f"}, Args: make([]Arg, 20_000)}
	for i := range s.Args {
		s.Args[i].Value.Meta = []byte{1}
	}
	got, err := Decode(KindSubmit, Append(nil, &Submit{Spec: s}))
	if err != nil || !reflect.DeepEqual(got, &Submit{Spec: s}) {
		t.Fatalf("%v", err)
	}
	d := &Done{Task: s.ID, Results: make([]Result, 20_000)}
	for i := range d.Results {
		d.Results[i].Kind = ResultStored
	}
	if _, err := Decode(KindDone, Append(nil, d)); err != nil {
		t.Fatal(err)
	}
}
