package main

import (
	"bytes"
	"fmt"
	"testing"

	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	if err := run(mobulatest.Context(t), func(a ...any) { fmt.Fprintln(&out, a...) }); err != nil {
		t.Fatal(err)
	}
	const want = `1 + 2 + 3 = 6
17 / 5 = 3 rest 2
1 / 0: division by zero
word: one
word: by
word: one
Hello, Ada! (1 served)
Hello, Grace! (2 served)
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
