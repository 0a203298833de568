package node

import (
	"bytes"
	"testing"
	"time"

	"mobula/raylet/internode"
)

// A worker that writes without end does not take the way to its job's home from the others: lines are left out, and counted.
func TestOutputThatGoesHomeIsBounded(t *testing.T) {
	now, bytesSent, linesSent, lost := int64(0), 0, 0, uint64(0)
	full := false
	h := &homeward{job: 7, now: func() int64 { return now }, full: func() bool { return full }, say: func(m *internode.WorkerOutput) {
		bytesSent += len(m.Lines)
		linesSent += bytes.Count(m.Lines, []byte{'\n'})
		lost += m.Lost
	}}
	line := append(bytes.Repeat([]byte("x"), 99), '\n')
	const written = 100_000
	for i := range written {
		if i%10_000 == 0 {
			now += int64(time.Second) / 4 // 10 MB in 2.5 s
		}
		if n, err := h.Write(line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if bytesSent > 4*mostOutput || bytesSent < 2*mostOutput {
		t.Errorf("%d bytes went, at most %d may in a second", bytesSent, mostOutput)
	}
	now += 2 * int64(time.Second)
	if _, err := h.Write(line); err != nil || linesSent+int(lost) != written+1 {
		t.Errorf("%d lines went and %d are counted as left out, of %d: %v", linesSent, lost, written+1, err)
	}
	sent, left := linesSent, lost
	full = true // the home does not read
	for range 10 {
		if n, err := h.Write(line); n != len(line) || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	full = false
	if _, err := h.Write(line); err != nil || linesSent != sent+1 || lost != left+10 {
		t.Errorf("%d lines went to a home that does not read, and %d are counted as left out: %v", linesSent-sent-1, lost-left, err)
	}
}
