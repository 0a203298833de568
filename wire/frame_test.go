package wire

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/errs"
	"mobula/internal/testkit"
)

// spliceFrom is the size from which a connection does not copy a value.
const spliceFrom = 8 << 10

func isErr(err, kind error) bool { return errors.Is(err, kind) }

func TestFramesHoldWhatWasAddedHoweverTheyAreCut(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		s := rapidSource{rt}
		var o FrameWriter
		o.enc.alias = 500 * s.upTo(1) // with and without splicing
		var want []Msg
		for range s.upTo(12) {
			var m Msg
			switch s.upTo(4) {
			case 0:
				m = putValue(s.upTo(3)*30_000, byte(s.upTo(255)))
			case 1:
				m = putValue(s.upTo(600_000), 1)
			default:
				m = drawMsg(s, Kind(1+s.upTo(int(kindEnd)-2)))
			}
			if p, ok := m.(*PutValue); ok && len(p.Value.Data) == 0 {
				p.Value.Data = nil
			}
			if err := o.add(m, nil); err != nil {
				rt.Fatal(err)
			}
			want = append(want, m)
		}
		size := o.Size()
		if o.open {
			size = o.enc.size()
		}
		data := joined(o.Parts(nil))
		if len(data) != size {
			rt.Fatalf("Size() is %d, %d bytes were written", size, len(data))
		}
		got, err := receive(data, 1+s.upTo(100_000))
		if err != nil {
			rt.Fatal(err)
		}
		if len(got) != len(want) {
			rt.Fatalf("%d messages came of %d", len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				rt.Fatalf("message %d is\n%+v\nwant\n%+v", i, got[i], want[i])
			}
		}
	})
}

func TestLargeValuesAreNotCopiedToSend(t *testing.T) {
	var o FrameWriter
	o.enc.alias = spliceFrom
	m := putValue(100_000, 3)
	for _, m := range []Msg{&Drain{}, m, &Drain{}} {
		if err := o.add(m, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range o.Parts(nil) {
		if &p.Data[0] == &m.Value.Data[0] && len(p.Data) == len(m.Value.Data) {
			return
		}
	}
	t.Fatal("the value's bytes were copied")
}

func TestLargeFrameIsKeptAndSmallOneCopied(t *testing.T) {
	x := &FrameReader{Limit: MaxFrame}
	for _, size := range []int{100, 200_000} {
		payload := rawFrame(t, putValue(size, 9))[headerSize:]
		msgs, err := x.frame(nil, header{size: len(payload)}, payload, size > frameTarget)
		if err != nil {
			t.Fatal(err)
		}
		data := msgs[0].(*PutValue).Value.Data
		clear(payload)
		if kept := data[0] == 0; kept != (size > frameTarget) {
			t.Errorf("a value of %d bytes aliases its frame: %v", size, kept)
		}
		if cap(data) != len(data) {
			t.Errorf("appending to a value of %d bytes would write beyond it", size)
		}
	}
}

// A result that is kept must not keep the others of its task: of many, one may be needed for long.
func TestResultsOfATaskDoNotKeepEachOther(t *testing.T) {
	const tasks, results = 100, 20
	for _, size := range []int{2000, 20_000} { // in a small frame and in a large one
		done := &Done{Err: errs.New(errs.CodeCancelled, "after them")}
		for i := range results {
			done.Results = append(done.Results, Result{Kind: ResultInline, Value: Value{Meta: []byte("meta"), Data: bytes.Repeat([]byte{byte(i + 1)}, size)}})
		}
		sent := rawFrame(t, done)[headerSize:]
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		var kept []Value
		for i := range tasks {
			payload := bytes.Clone(sent)
			x := &FrameReader{Limit: MaxFrame}
			msgs, err := x.frame(nil, header{size: len(payload)}, payload, len(payload) > frameTarget)
			if err != nil {
				t.Fatal(err)
			}
			clear(payload)
			m, nth := msgs[0].(*Done), i%results
			if m.Err == nil || m.Err.Msg != "after them" {
				t.Fatalf("the error is %v", m.Err)
			}
			for k, r := range m.Results {
				if string(r.Value.Meta) != "meta" || !bytes.Equal(r.Value.Data, done.Results[k].Value.Data) {
					t.Fatalf("result %d of %d bytes has changed with its frame", k, size)
				}
			}
			kept = append(kept, m.Results[nth].Value)
		}
		if grown := int64(heap()) - int64(before); grown > int64(tasks*size*3) {
			t.Errorf("%d results of %d bytes keep %d bytes", len(kept), size, grown)
		}
		runtime.KeepAlive(kept)
	}
}

func TestMessageThatCannotBeSentLeavesNoTrace(t *testing.T) {
	for _, first := range []bool{true, false} {
		var o FrameWriter
		o.enc.alias = spliceFrom
		want := []Msg{}
		if !first {
			want = append(want, &Credit{Bytes: 1})
			if err := o.add(want[0], nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, bad := range []struct {
			m     Msg
			words []string
		}{
			{nil, []string{"nil"}},
			{foreign{}, []string{"foreign"}},
			{&PutValue{Value: Value{Meta: make([]byte, MaxMeta+1)}}, []string{"Meta", "4097", "4096"}},
			{putValue(MaxFrame, 1), []string{"PutValue", "67108864"}},
		} {
			wantErr(t, o.add(bad.m, nil), errs.ErrInvalid, bad.words...)
		}
		last := &Credit{Bytes: 2}
		if err := o.add(last, nil); err != nil {
			t.Fatal(err)
		}
		got, err := receive(joined(o.Parts(nil)), 1<<20)
		if want = append(want, last); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
}

type foreign struct{}

func (foreign) Kind() Kind { return KindSubmit }

func TestMalformedFrames(t *testing.T) {
	good := rawFrame(t, &Credit{Bytes: 5})
	edit := func(at int, b ...byte) []byte {
		f := bytes.Clone(good)
		copy(f[at:], b)
		return f
	}
	payload := func(p ...byte) []byte {
		f := make([]byte, headerSize, headerSize+len(p))
		putHeader(f, header{size: len(p)})
		return append(f, p...)
	}
	big := make([]byte, headerSize)
	two := append(tagged(KindDrain, nil), tagged(KindRequest, bytes.Repeat([]byte{0x82, 0x7d, 0}, 40_000))...)
	putHeader(big, header{size: len(two)})
	for _, c := range []struct {
		name  string
		data  []byte
		words []string
	}{
		{"magic", edit(0, 'G', 'E'), []string{"GE", "Mb"}},
		{"version", edit(2, 9), []string{"version 9"}},
		{"flags", edit(3, 0x82), []string{"0x82"}},
		{"4 GiB", edit(4, 0xff, 0xff, 0xff, 0xff), []string{"4294967295", "67108864"}},
		{"over the limit", edit(4, 1, 0, 0, 4), []string{"67108865"}},
		{"truncated header", good[:5], []string{"truncated", "5 of 8"}},
		{"truncated payload", good[:len(good)-1], []string{"truncated", "4 of 5"}},
		{"truncated large", append(rawFrame(t, putValue(200_000, 1))[:100_000], "..."...), []string{"truncated", "99995 of 2000"}},
		{"wrong wire type", payload(0x08, 1), []string{"byte 0 of 2"}},
		{"kind 0", payload(0x02, 0), []string{"byte 0 of 2"}},
		{"bad tag", payload(0xff), []string{"byte 0 of 1"}},
		{"message too long", payload(append(tagged(KindDrain, nil)[:2], 9)...), []string{"byte 2 of 3", "announces 9"}},
		{"bad message", payload(byte(KindGet)<<3|2, 3, 0x0a, 1, 7), []string{"Get", "byte 2 of 3", "id of 1 bytes"}},
		{"no file", edit(3, flagFile), []string{"descriptor"}},
		{"two in a large frame", append(big, two...), []string{"must be one message"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			msgs, err := receive(append(bytes.Clone(good), c.data...), 1<<20)
			wantErr(t, err, errs.ErrProtocol, append(c.words, "frame 2")...)
			if len(msgs) != 1 || !reflect.DeepEqual(msgs[0], &Credit{Bytes: 5}) {
				t.Errorf("the message before the bad frame is lost: %v", msgs)
			}
		})
	}
}

// tagged is a message in a payload.
func tagged(k Kind, body []byte) []byte {
	return append(appendVarint(appendVarint(nil, uint64(k)<<3|wtBytes), uint64(len(body))), body...)
}

func TestAnnouncedSizeIsNotAllocated(t *testing.T) {
	for _, size := range []uint32{1<<32 - 1, MaxFrame} {
		f := make([]byte, headerSize)
		putHeader(f, header{size: int(size)})
		if _, err := receive(f, 1<<20); err == nil { // fills the pool
			t.Fatal("a frame without its payload was accepted")
		}
		if n := allocated(func() { _, _ = receive(f, 1<<20) }); n > 2*bigStart {
			t.Errorf("a header that announces %d bytes made the receiver allocate %d", size, n)
		}
	}
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	f()
	runtime.ReadMemStats(&b)
	return b.TotalAlloc - a.TotalAlloc
}

func TestKindsOfALaterVersionAreSkipped(t *testing.T) {
	p := append(tagged(kindEnd, []byte("whatever")), tagged(200, nil)...)
	p = append(p, tagged(KindCredit, Append(nil, &Credit{Bytes: -3}))...)
	f := make([]byte, headerSize)
	putHeader(f, header{size: len(p)})
	got, err := receive(append(f, p...), 3)
	if err != nil || !reflect.DeepEqual(got, []Msg{&Credit{Bytes: -3}}) {
		t.Fatalf("got %v, %v", got, err)
	}
}
