package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestARelayPassesOnEverything(t *testing.T) {
	var out bytes.Buffer
	r := newRelay()
	go r.run(&out)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("(worker/1) %d\n", i)
		want.WriteString(line)
		if n, err := io.WriteString(r, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	r.close()
	if out.String() != want.String() {
		t.Errorf("got %q", out.String())
	}
}

// A worker must not stop because nobody reads what it says.
func TestARelayDoesNotWaitForItsReader(t *testing.T) {
	in, out := io.Pipe()
	r := newRelay()
	go r.run(out)
	line := strings.Repeat("x", 1023) + "\n"
	const n = 3 * relayBytes / 1024
	for range n {
		if _, err := io.WriteString(r, line); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan string)
	go func() {
		b, err := io.ReadAll(in)
		if err != nil {
			b = []byte(err.Error())
		}
		got <- string(b)
	}()
	r.close()
	<-r.done
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text := <-got
	come, left := strings.Count(text, line), 0
	for said := range strings.Lines(strings.ReplaceAll(text, line, "")) { // more than one, where the relay goes on before it is read
		var lines int
		if _, err := fmt.Sscanf(said, "(mobula) %d lines that workers wrote are left out here; mobula logs has them\n", &lines); err != nil {
			t.Errorf("it says %q", said)
		}
		left += lines
	}
	if come == 0 || left == 0 || come+left != n {
		t.Errorf("%d of %d lines have come, and %d are said to be left out", come, n, left)
	}
}

func TestARelayWithoutAReaderEnds(t *testing.T) {
	in, out := io.Pipe()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRelay()
	go r.run(out)
	if _, err := io.WriteString(r, "lost\n"); err != nil {
		t.Fatal(err)
	}
	<-r.done
	for range 2 {
		if _, err := r.Write(bytes.Repeat([]byte("lost\n"), relayBytes/5)); err != nil {
			t.Fatal(err)
		}
	}
	r.close()
	if len(r.buf) > relayBytes {
		t.Errorf("it keeps %d bytes", len(r.buf))
	}
}
