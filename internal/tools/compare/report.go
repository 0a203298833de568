package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// report prints a line a row: marked ones first to find, as they end with a word.
func report(out io.Writer, rows []*row, base string, rounds int, took time.Duration) {
	fmt.Fprintf(out, "\n%-24s %12s %12s %-9s %9s %9s\n", "row", "new", base, "unit", "new/base", "base/base")
	marked := 0
	for _, r := range rows {
		v := r.judge(len(rows))
		if v.mark != "" {
			marked++
		}
		if r.failed != "" {
			fmt.Fprintf(out, "%-24s failed: %s\n", r.name, r.failed)
			continue
		}
		fmt.Fprintf(out, "%-24s %12s %12s %-9s %9s %9s  %s\n", r.name, shown(r.value(r.news)), shown(r.value(r.bases)), r.unit, ratio(v.ratio), ratio(v.self), v.mark)
	}
	fmt.Fprintf(out, "%d rounds in %.1f minutes; %d of %d rows marked. Ratios are of costs: above 1 is slower.\n", rounds, took.Minutes(), marked, len(rows))
	if rounds < fewest {
		fmt.Fprintf(out, "Fewer than %d rounds: no row can be marked. Give it more time, or fewer rows.\n", fewest)
	}
}

// reportJSON prints one object a row.
func reportJSON(out io.Writer, rows []*row, base string) error {
	e := json.NewEncoder(out)
	for _, r := range rows {
		v := r.judge(len(rows))
		name, mode, _ := strings.Cut(r.name, " ")
		o := map[string]any{"row": name, "mode": mode, "base": base, "unit": r.unit, "failed": r.failed, "mark": v.mark, "new": r.values(r.news), "old": r.values(r.bases)}
		if !math.IsNaN(v.ratio) && !math.IsNaN(v.self) {
			o["new/base"], o["base/base"] = v.ratio, v.self
		}
		if err := e.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

// value is the median as the benchmark gives it.
func (r *row) value(costs []float64) float64 {
	if len(costs) == 0 {
		return math.NaN()
	}
	return median(r.values(costs))
}

func (r *row) values(costs []float64) []float64 {
	out := slices.Clone(costs)
	if r.rate {
		for i := range out {
			out[i] = 1 / out[i]
		}
	}
	return out
}

func ratio(x float64) string {
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.3f", x)
}

func shown(x float64) string {
	switch {
	case math.IsNaN(x):
		return "-"
	case x >= 1000:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
