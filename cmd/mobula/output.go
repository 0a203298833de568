package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// rows prints a table with a head and columns but no lines, so that awk can read it too. On a terminal it fits the width: texts are
// cut, and if that is not enough columns are left out. The first column, which users copy, is never cut.
func rows(w io.Writer, c columns, data [][]string) {
	c, data = c.placed(data)
	cells := make([][]string, len(data))
	for i, d := range data {
		cells[i] = clean(d)
	}
	head := c.head
	var out []string
	if s, ok := w.(screen); ok {
		head, cells, out = c.narrowed(s.width, cells)
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	var cfg []table.ColumnConfig
	for i, h := range head {
		cc := table.ColumnConfig{Number: i + 1, Align: text.AlignLeft}
		if slices.Contains(c.right, h) {
			cc.Align, cc.AlignHeader = text.AlignRight, text.AlignRight
		}
		cfg = append(cfg, cc)
	}
	t.SetColumnConfigs(cfg)
	t.AppendHeader(row(head))
	for _, d := range cells {
		t.AppendRow(row(d))
	}
	t.SuppressTrailingSpaces()
	t.Render()
	if len(out) > 0 {
		fmt.Fprintf(w, "no room here for %s; a wider terminal, a pipe and --json have them\n", strings.Join(out, ", "))
	}
}

// columns describes the columns of a table.
type columns struct {
	head  []string
	right []string // have numbers, and are never cut
	less  []string // are left out first if there is no room
	nodes []string // of each row; in a cluster they are the second column
}

// placed has the nodes in a column, if there are any.
func (c columns) placed(data [][]string) (columns, [][]string) {
	if !slices.ContainsFunc(c.nodes, func(n string) bool { return n != "" }) {
		return c, data
	}
	c.head = slices.Insert(slices.Clone(c.head), 1, "NODE")
	out := make([][]string, len(data))
	for i, d := range data {
		out[i] = slices.Insert(slices.Clone(d), 1, c.nodes[i])
	}
	return c, out
}

// narrowed makes a table fit a line, and names the columns that it leaves out.
func (c columns) narrowed(width int, cells [][]string) (head []string, kept [][]string, out []string) {
	natural := make([]int, len(c.head))
	var less []string // first the columns that are empty
	for i, h := range c.head {
		natural[i] = text.StringWidth(h)
		empty := i > 0
		for _, row := range cells {
			natural[i] = max(natural[i], text.StringWidth(row[i]))
			empty = empty && row[i] == "-"
		}
		if empty {
			less = append(less, h)
		}
	}
	at := fit(width, c.head, natural, append(slices.Clone(c.right), c.head[0]), append(less, c.less...))
	kept = make([][]string, len(cells))
	for i, h := range c.head {
		if at[i] == 0 {
			out = append(out, h)
			continue
		}
		head = append(head, h)
		for r, row := range cells {
			kept[r] = append(kept[r], text.Snip(row[i], at[i], "…"))
		}
	}
	return head, kept, out
}

// clean makes cells of texts from programs.
func clean(texts []string) []string {
	out := make([]string, len(texts))
	for i, c := range texts {
		if out[i] = oneLine(c); c == "" {
			out[i] = "-" // an empty cell would shift the columns of awk
		}
	}
	return out
}

func row(cells []string) table.Row {
	out := make(table.Row, len(cells))
	for i, c := range cells {
		out[i] = c
	}
	return out
}

// oneLine keeps a program's text from breaking the table or the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

func size(n uint64) string { return humanize.IBytes(n) }

// span is a duration for people.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
	return d.Round(time.Second).String()
}

// since says how long ago a time of the node's clock was.
func (a *app) since(at int64) string {
	if at == 0 {
		return ""
	}
	return span(time.Duration(a.clockNow() - at))
}

// counts lists the numbers above zero by name: "3 RUNNING, 1 FAILED".
func counts[N int | uint64](m map[string]N) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] > 0 {
			out = append(out, fmt.Sprintf("%d %s", m[k], k))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// footer says how many rows a page leaves out, and how to get them.
func footer(w io.Writer, shown, total int, next string) {
	switch {
	case next != "":
		fmt.Fprintf(w, "%s of %s shown; for the next: --cursor %s\n", humanize.Comma(int64(shown)), humanize.Comma(int64(total)), next)
	case shown < total:
		fmt.Fprintf(w, "the last %s of %s shown\n", humanize.Comma(int64(shown)), humanize.Comma(int64(total)))
	default:
		fmt.Fprintf(w, "%s shown\n", humanize.Comma(int64(total)))
	}
}
