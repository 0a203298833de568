package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

// screen is an output that is a terminal: tables are cut to fit it. Other outputs get everything whole.
type screen struct {
	io.Writer
	width, height int
}

// screenOf tells whether w is a terminal, and how large it is now.
func screenOf(w io.Writer) (screen, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return screen{}, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return screen{w, width, height}, err == nil && width > 0
}

const (
	gap    = 2  // between two columns
	narrow = 10 // a column is not made narrower than this, or than its head
)

// fit makes columns fit a line of the given width. It makes those that may be cut narrower, the widest first; if that is not enough, it
// leaves out columns of less, in order. It returns each column's width, 0 for one that is left out.
func fit(width int, head []string, natural []int, whole, less []string) []int {
	at := slices.Clone(natural)
	least := make([]int, len(at))
	for i, h := range head {
		if least[i] = natural[i]; !slices.Contains(whole, h) {
			least[i] = min(natural[i], max(narrow, text.StringWidth(h)))
		}
	}
	for _, h := range less {
		if total(least) <= width {
			break
		}
		if i := slices.Index(head, h); i >= 0 {
			at[i], least[i] = 0, 0
		}
	}
	for total(at) > width {
		widest := -1
		for i := range at {
			if at[i] > least[i] && (widest < 0 || at[i] > at[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break // columns that must be whole go on in the next line
		}
		at[widest]--
	}
	return at
}

func total(widths []int) (n int) {
	for _, w := range widths {
		if w > 0 {
			n += w + gap
		}
	}
	return n - gap
}

// frame is the part of a text that fits the screen: longer lines are cut, and further lines are counted.
func (s screen) frame(body string) string {
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if most := max(s.height-1, 1); s.height > 0 && len(lines) > most { // the cursor is in the last line
		lines = append(lines[:most-1], fmt.Sprintf("... and %d lines more", len(lines)-most+1))
	}
	for i, l := range lines {
		lines[i] = text.Snip(l, s.width, "…")
	}
	return strings.Join(lines, "\n") + "\n"
}
