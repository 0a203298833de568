package transcript

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Run tells the stories of testdata/transcripts. begin starts one: what it gives carries out a block, and says what came of it, a line each.
func Run(t *testing.T, begin func(t *testing.T) func(Block) []string) {
	t.Helper()
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		tell := begin(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			said := slices.DeleteFunc(tell(Block{d.Cmd, t, d}), func(line string) bool { return line == "" })
			if len(said) == 0 {
				said = []string{"nothing"}
			}
			return strings.Join(said, "\n") + "\n"
		})
	})
}

// Block is one command: its name, words by their place, and options NAME=VALUE or NAME alone. What it has not, or not in this form, ends the test.
type Block struct {
	Cmd string
	T   *testing.T
	d   *datadriven.TestData
}

// Fatalf ends the test, with the place of the block.
func (b Block) Fatalf(format string, args ...any) {
	b.T.Helper()
	b.d.Fatalf(b.T, format, args...)
}

// Unknown ends the test where there is no such command.
func (b Block) Unknown() {
	b.T.Helper()
	b.Fatalf("there is no command %q", b.Cmd)
}

// Input is the lines below the command.
func (b Block) Input() []string { return strings.Split(b.d.Input, "\n") }

// Words are the arguments without a value, options of that kind among them.
func (b Block) Words() []string {
	var out []string
	for _, a := range b.d.CmdArgs {
		if a.Vals == nil {
			out = append(out, a.Key)
		}
	}
	return out
}

// Word is the i-th of Words.
func (b Block) Word(i int) string {
	b.T.Helper()
	words := b.Words()
	if i >= len(words) {
		b.Fatalf("%s has %d words, want %d", b.Cmd, len(words), i+1)
	}
	return words[i]
}

// Number is the i-th of Words, as a number.
func (b Block) Number(i int) int {
	b.T.Helper()
	return b.number(b.Word(i))
}

// Duration is the i-th of Words, as a duration.
func (b Block) Duration(i int) time.Duration {
	b.T.Helper()
	d, err := time.ParseDuration(b.Word(i))
	if err != nil {
		b.Fatalf("%v", err)
	}
	return d
}

// Has tells whether there is an option, with a value or without.
func (b Block) Has(name string) bool { return b.d.HasArg(name) }

// Options are the names of the options with a value, in order.
func (b Block) Options() []string {
	var out []string
	for _, a := range b.d.CmdArgs {
		if a.Vals != nil {
			out = append(out, a.Key)
		}
	}
	return out
}

// List is the values of an option NAME=(VALUE, VALUE).
func (b Block) List(name string) []string {
	for _, a := range b.d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

// Text is the value of an option, or otherwise. One with spaces stands in parentheses.
func (b Block) Text(name, otherwise string) string {
	if v := b.List(name); len(v) > 0 {
		return strings.Join(v, ", ")
	}
	return otherwise
}

// Int is the value of an option as a number, or otherwise.
func (b Block) Int(name string, otherwise int) int {
	b.T.Helper()
	if !b.Has(name) {
		return otherwise
	}
	return b.number(b.Text(name, ""))
}

func (b Block) number(s string) int {
	b.T.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return n
}
