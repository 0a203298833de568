package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"mobula"
)

const usage = `Actorbench measures messages between actors: one row on one system, as a JSON object of figures.

Usage: actorbench [-quick] ROW SYSTEM

Examples:
  make bench-peers ARGS=actors               every row on every system in turn, in a table
  go run ./benchmarks/actorbench ask mobula  one run
`

func main() {
	if err := enter(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "actorbench:", err)
		os.Exit(1)
	}
}

// enter does what this process is for: it has a part in a row in two processes, or runs a row.
func enter(args []string, out io.Writer) error {
	if mobula.WorkerMain() {
		return nil
	}
	if mine, err := socketMain(); mine {
		return err
	}
	runtime.GOMAXPROCS(cpus)
	if err := os.Setenv("GOMAXPROCS", strconv.Itoa(cpus)); err != nil { // of other processes
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return run(ctx, args, out)
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("actorbench", flag.ContinueOnError)
	flags.SetOutput(out)
	quick := flags.Bool("quick", false, "small sizes, to see that it works: the figures mean nothing")
	flags.Usage = func() { help(flags, out) }
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 2 {
		return errors.New("want a row and a system; --help lists them")
	}
	r, err := chosen(flags.Arg(0), flags.Arg(1))
	if err != nil {
		return err
	}
	z := &full
	if *quick {
		z = &tiny
	}
	found, err := r.run(ctx, flags.Arg(1), z)
	if err != nil {
		return fmt.Errorf("%s on %s: %w", r.name, flags.Arg(1), err)
	}
	return json.NewEncoder(out).Encode(found)
}

func chosen(name, system string) (*row, error) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if at < 0 {
		return nil, fmt.Errorf("there is no row %q; --help lists them", name)
	}
	if r := &rows[at]; slices.Contains(r.systems, system) {
		return r, nil
	}
	return nil, fmt.Errorf("row %s runs on %s, not on %q", name, strings.Join(rows[at].systems, ", "), system)
}

func help(flags *flag.FlagSet, out io.Writer) {
	fmt.Fprintf(out, "%s\nFlags:\n", usage)
	flags.PrintDefaults()
	fmt.Fprintf(out, "\nRows, and the systems they run on:\n")
	t := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(t, "  %s\t%s (%s)\n", r.name, r.what, strings.Join(r.systems, ", "))
	}
	_ = t.Flush()
}
