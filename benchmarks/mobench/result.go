package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"mobula/benchmarks/floor"
)

// report is what a case found.
type report struct {
	unit    string
	samples []float64 // one a run
	floor   float64   // in the same unit; 0: none applies
	fields  []field
	failed  string // a bound that the case itself sets was broken
}

// field is a further figure.
type field struct {
	name  string
	value any
}

func (r *report) add(name string, value any) { r.fields = append(r.fields, field{name, value}) }

// addSamples adds the median, least and greatest of further samples.
func (r *report) addSamples(name string, s []float64) {
	r.add(name, median(s))
	if len(s) > 1 {
		r.add(name+"_min", floor.Quantile(s, 0))
		r.add(name+"_max", floor.Quantile(s, 1))
	}
}

// result is a line of the output.
type result struct {
	Case, Mode string
	*report           // nil if skipped or failed
	skipped    string // why
	err        error
}

// pairs are the names and values of a line.
func (r *result) pairs() []field {
	out := []field{{"case", r.Case}, {"mode", r.Mode}}
	switch {
	case r.skipped != "":
		return append(out, field{"skipped", r.skipped})
	case r.err != nil:
		return append(out, field{"error", r.err.Error()})
	}
	s := r.samples
	out = append(out, field{"value", median(s)}, field{"unit", r.unit}, field{"min", floor.Quantile(s, 0)}, field{"max", floor.Quantile(s, 1)}, field{"runs", len(s)})
	if r.floor > 0 {
		out = append(out, field{"floor", r.floor}, field{"ratio", median(s) / r.floor})
	}
	out = append(out, r.fields...)
	if r.failed != "" {
		out = append(out, field{"failed", r.failed})
	}
	return out
}

// MarshalJSON keeps the order of the fields.
func (r *result) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r.pairs() {
		if i > 0 {
			b.WriteByte(',')
		}
		v := f.value
		if x, ok := v.(float64); ok {
			v = json.Number(number(x))
		}
		data, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.name, r.Case, err)
		}
		fmt.Fprintf(&b, "%q:%s", f.name, data)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// number has four significant digits at least: more would be noise.
func number(x float64) string {
	if x >= 1000 || x <= -1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// table writes the results as one.
func table(w io.Writer, results []*result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CASE\tMODE\tVALUE\tUNIT\tMIN\tMAX\tRUNS\tFLOOR\tRATIO\tFURTHER")
	for _, r := range results {
		if r.report == nil {
			why := "skipped: " + r.skipped
			if r.err != nil {
				why = "error: " + strings.ReplaceAll(r.err.Error(), "\n", "; ")
			}
			fmt.Fprintf(t, "%s\t%s\t-\t\t\t\t\t\t\t%s\n", r.Case, r.Mode, why)
			continue
		}
		cells := make(map[string]string)
		var more []string
		for _, f := range r.pairs() {
			text := fmt.Sprint(f.value)
			if x, ok := f.value.(float64); ok {
				text = number(x)
			}
			switch f.name {
			case "case", "mode", "value", "unit", "min", "max", "runs", "floor", "ratio":
				cells[f.name] = text
			default:
				more = append(more, f.name+"="+text)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cells["case"], cells["mode"], cells["value"], cells["unit"],
			cells["min"], cells["max"], cells["runs"], cells["floor"], cells["ratio"], strings.Join(more, " "))
	}
	return t.Flush()
}

func median(s []float64) float64 { return floor.Quantile(s, 0.5) }
