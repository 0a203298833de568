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
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text := <-got
	come := strings.Count(text, line)
	if _, end, _ := strings.Cut(text, "(mobula) "); come == 0 || end != fmt.Sprintf("%d lines that workers wrote are left out here; mobula logs has them\n", n-come) {
		t.Errorf("%d of %d lines, then %q", come, n, end)
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
