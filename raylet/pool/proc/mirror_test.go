package proc

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/testkit"
)

// However the output of two workers is split into writes, each line arrives whole, in its worker's order, with the
// worker's name.
func TestLinesAreNeverCut(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		m := &mirror{out: &out}
		texts := map[string]string{"a ": "one\ntwo\n\nlast", "b ": "x\nyy\nzzz\n"}
		ways := map[string]*lines{"a ": {to: m, prefix: "a "}, "b ": {to: m, prefix: "b "}}
		left := map[string]string{"a ": texts["a "], "b ": texts["b "]}
		for left["a "] != "" || left["b "] != "" {
			who := rapid.SampledFrom([]string{"a ", "b "}).Draw(t, "who")
			n := rapid.IntRange(0, len(left[who])).Draw(t, "bytes")
			ways[who].write([]byte(left[who][:n]))
			left[who] = left[who][n:]
		}
		ways["a "].end()
		ways["b "].end()
		got := map[string]string{}
		for line := range strings.Lines(out.String()) {
			got[line[:2]] += line[2:]
		}
		if got["a "] != texts["a "]+"\n" || got["b "] != texts["b "] {
			t.Fatalf("got %q", out.String())
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("nobody reads this") }

func TestALongLineComesInPiecesAndABrokenReaderStopsNothing(t *testing.T) {
	var out bytes.Buffer
	l := &lines{to: &mirror{out: &out}, prefix: "a "}
	for range 3 {
		l.write(bytes.Repeat([]byte("x"), maxLine/2+1))
	}
	l.write([]byte("\nend\n"))
	if n := strings.Count(out.String(), "x"); n != 3*(maxLine/2+1) || !strings.HasSuffix(out.String(), "\na end\n") || cap(l.part) > 2*maxLine {
		t.Errorf("%d of %d bytes came, %d are kept", n, 3*(maxLine/2+1), cap(l.part))
	}
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "a ") {
			t.Errorf("a piece without a name: %q", line[:10])
		}
	}
	none := &lines{to: &mirror{out: broken{}}}
	none.write([]byte("lost\n"))
	var nobody *lines
	nobody.write([]byte("x\n"))
	nobody.end()
}
