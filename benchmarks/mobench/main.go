package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const examples = `Examples:
  go run ./benchmarks/mobench                                   every case in every mode
  go run ./benchmarks/mobench -mode process task-sync spill     two cases with worker processes
  go run ./benchmarks/mobench -mode embedded,node -json -runs 3 JSON, an object a line
  go run ./benchmarks/mobench -mode embedded -cpuprofile cpu.prof task-async
  go run ./benchmarks/mobench -mode nodes transfer              two nodes, as root, after make build
`

// options are what the flags say.
type options struct {
	modes      []string
	mobula     string // of nodes: the executable
	runs       int
	json       bool
	quiet      bool
	dir        string
	timeout    time.Duration
	cpu, mem   string
	profileDir string
	cases      []*benchCase
}

func main() {
	if enter() {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = inPlace(ctx, o)
	}
	if err != nil {
		if !errors.Is(err, errThere) {
			fmt.Fprintln(os.Stderr, "mobench:", err)
		}
		stop()
		os.Exit(1)
	}
}

// inPlace runs the cases here, or on a host of a network.
func inPlace(ctx context.Context, o options) error {
	over, err := enterNetwork(o.mobula)
	if err != nil {
		return err
	}
	if over == nil && slices.ContainsFunc(o.modes, func(m string) bool { return slices.Contains(modesOverNodes, m) }) {
		return onFirstHost(ctx, os.Args[1:])
	}
	return run(ctx, o, full, over, os.Stdout, os.Stderr)
}

func parse(args []string, out io.Writer) (o options, err error) {
	fs := flag.NewFlagSet("mobench", flag.ContinueOnError)
	fs.SetOutput(out)
	mode := fs.String("mode", strings.Join(modes, ","), "where node and tasks run, several with commas:\nembedded (goroutines), process (worker processes), node (driver, node and workers apart),\nnodes (several nodes, each on a host of its own; as root), nodes-embedded (the driver's inside the driver)")
	fs.StringVar(&o.mobula, "mobula", cmp.Or(os.Getenv("MOBULA_BINARY"), filepath.Join("bin", "mobula")), "the executable of nodes, for the modes over nodes")
	fs.IntVar(&o.runs, "runs", 5, "of each case; the value is their median")
	fs.BoolVar(&o.json, "json", false, "print one JSON object a line, not a table")
	fs.BoolVar(&o.quiet, "quiet", false, "do not print progress")
	fs.StringVar(&o.dir, "dir", os.TempDir(), "for spill files and node directories: on the disk to measure")
	fs.DurationVar(&o.timeout, "timeout", 10*time.Minute, "of each case")
	fs.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile of this process to this file")
	fs.StringVar(&o.mem, "memprofile", "", "write an allocation profile of this process to this file")
	fs.StringVar(&o.profileDir, "profiles", "", "write profiles of every process, nodes and workers too, to this directory")
	fs.Usage = func() {
		fmt.Fprintf(out, "Mobench measures Mobula beside what the machine can do without it.\n\nUsage: mobench [flags] [CASE...]\n\n%s\nFlags:\n", examples)
		fs.PrintDefaults()
		fmt.Fprintf(out, "\nCases:\n")
		t := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
		for _, c := range cases {
			fmt.Fprintf(t, "  %s\t%s\n", c.name, c.what)
		}
		_ = t.Flush()
	}
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	for m := range strings.SplitSeq(*mode, ",") {
		if all := slices.Concat(modes, modesOverNodes); !slices.Contains(all, m) {
			return o, fmt.Errorf("-mode %q: want one or more of %s", m, strings.Join(all, ", "))
		}
		o.modes = append(o.modes, m)
	}
	if o.runs < 1 {
		return o, fmt.Errorf("-runs %d: want 1 or more", o.runs)
	}
	if o.cases, err = chosen(fs.Args()); err != nil || fs.NArg() == 0 {
		return o, err
	}
	for _, c := range o.cases {
		if !slices.ContainsFunc(o.modes, c.fits) {
			return o, fmt.Errorf("case %s runs in none of the modes %s", c.name, strings.Join(o.modes, ", "))
		}
	}
	return o, nil
}

// chosen are the cases of those names; all without names.
func chosen(names []string) ([]*benchCase, error) {
	var out []*benchCase
	for i := range cases {
		if len(names) == 0 || slices.Contains(names, cases[i].name) {
			out = append(out, &cases[i])
		}
	}
	for _, n := range names {
		if !slices.ContainsFunc(out, func(c *benchCase) bool { return c.name == n }) {
			return nil, fmt.Errorf("there is no case %q; --help lists them", n)
		}
	}
	return out, nil
}

// errCases is returned when a case failed; its line says why.
var errCases = errors.New("not every case succeeded")

// run runs the cases and prints the results. over is nil but on a host of a network.
func run(ctx context.Context, o options, p params, over *between, out, progress io.Writer) (err error) {
	if o.quiet {
		progress = io.Discard
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if err := setenv(profiles(o.profileDir)); err != nil {
		return err
	}
	cpu, mem := o.cpu, o.mem
	if o.profileDir != "" {
		if err := os.MkdirAll(o.profileDir, 0o700); err != nil {
			return err
		}
		cpu, mem = filepath.Join(o.profileDir, "cpu-driver.prof"), filepath.Join(o.profileDir, "mem-driver.prof")
	}
	stop, err := profileTo(cpu, mem)
	if err != nil {
		return err
	}
	defer stop()
	sink, err := startSink(over.address())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sink.close()) }()
	if err := setenv(sink.tracing(os.Getenv)); err != nil {
		return err
	}
	var results []*result
	failed := false
	for _, c := range o.cases {
		for _, mode := range o.modes {
			if !c.fits(mode) {
				continue
			}
			b := &bench{params: p, mode: mode, runs: o.runs, dir: o.dir, over: over, sink: sink, log: func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) }}
			r := runCase(ctx, c, b, o.timeout)
			failed = failed || r.err != nil || r.report != nil && r.failed != ""
			results = append(results, r)
			if o.json {
				if err := json.NewEncoder(out).Encode(r); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
	if !o.json {
		if err := table(out, results); err != nil {
			return err
		}
	}
	if failed {
		return errCases
	}
	return nil
}

// profiles is the environment that has children profile themselves.
func profiles(dir string) []string {
	if dir == "" {
		return nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	return []string{profileEnv + "=" + abs}
}
