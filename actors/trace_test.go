package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"mobula/wire"
)

func TestTraceReachesDo(t *testing.T) {
	s := system(t, Config{})
	r, _, open := gated(t, s, 64) // so that all are of one batch
	tc := func(b byte) wire.TraceContext { return wire.TraceContext{TraceID: [16]byte{b}, Flags: 1} }
	var got []byte
	see := []eff{{run: func(self *Ref[ev]) { got = append(got, self.Trace().TraceID[0]) }}}
	for i, b := range []byte{0, 7, 0, 8, 9, 0} {
		e := ev{id: 10 + i, do: see}
		if b == 8 {
			e.crash = 1
		}
		if b == 0 {
			post(t, r, e)
		} else if err := r.PostTraced(tc(b), e); err != nil {
			t.Fatal(err)
		}
	}
	open()
	barrier(t, r)
	post(t, r, ev{id: 20, do: see})
	barrier(t, r)
	want(t, "traces", got, []byte{0, 7, 0, 8, 9, 0, 0})
}

func TestSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spans []Span
		s := NewSystem(Config{OnSpan: func(sp Span) { spans = append(spans, sp); panic("a hook's panic harms nobody") }})
		r := spawn(t, s, scriptSpec("a", newRecording()))
		begin := time.Now().UnixNano()
		post(t, r, ev{step: func(*recording) { time.Sleep(time.Second) }})
		sampled := wire.TraceContext{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Flags: 1}
		if err := r.PostTraced(sampled, ev{step: func(*recording) { time.Sleep(2 * time.Second) }}); err != nil {
			t.Fatal(err)
		}
		if err := r.PostTraced(wire.TraceContext{TraceID: [16]byte{3}}, ev{}); err != nil { // not sampled
			t.Fatal(err)
		}
		barrier(t, r)
		sec := int64(time.Second)
		want(t, "spans", spans, []Span{{Kind: "script", Name: "a", Message: "actors.ev", Trace: sampled,
			Posted: begin, Start: begin + sec, End: begin + 3*sec}})
		stopTree(t, s)
	})
}
