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

// rows prints a table: a head and columns, no lines, so that it can be read by awk too.
// Columns in right hold numbers.
func rows(w io.Writer, head []string, right string, data [][]string) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	var cfg []table.ColumnConfig
	for i, h := range head {
		c := table.ColumnConfig{Number: i + 1, Align: text.AlignLeft}
		if slices.Contains(strings.Fields(right), h) {
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		cfg = append(cfg, c)
	}
	t.SetColumnConfigs(cfg)
	t.AppendHeader(row(head))
	for _, d := range data {
		t.AppendRow(row(d))
	}
	t.SuppressTrailingSpaces()
	t.Render()
}

func row(cells []string) table.Row {
	out := make(table.Row, len(cells))
	for i, c := range cells {
		if c == "" {
			c = "-" // an empty cell would shift the columns of awk
		}
		out[i] = oneLine(c)
	}
	return out
}

// oneLine keeps what a program said from breaking the table, or the terminal.
func oneLine(s string) string {
	const most = 120
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

func size(n uint64) string { return humanize.IBytes(n) }

// span is a duration as people say it.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// since is how long ago a time of the node's clock was.
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

// footer says what a page leaves out, and how to get it.
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
