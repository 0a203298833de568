package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	f := flag.NewFlagSet("sim", flag.ContinueOnError)
	nodes := f.String("nodes", "10,100,1000,10000", "how many nodes, in a run each")
	cfg := defaults()
	f.IntVar(&cfg.Owners, "owners", cfg.Owners, "nodes at which the tasks are submitted, each a part of them as a job of its own")
	f.IntVar(&cfg.CPUs, "cpus", cfg.CPUs, "slots of a node")
	f.IntVar(&cfg.Tasks, "tasks", cfg.Tasks, "tasks in all")
	f.DurationVar(&cfg.Median, "median", cfg.Median, "time of a task")
	f.Float64Var(&cfg.Sigma, "sigma", cfg.Sigma, "of the logarithm of a task's time")
	f.Float64Var(&cfg.Local, "local", cfg.Local, "share of the tasks with arguments")
	f.Uint64Var(&cfg.ArgBytes, "arg-bytes", cfg.ArgBytes, "bytes of a task's arguments, moved at 1 GiB/s")
	f.DurationVar(&cfg.Latency, "latency", cfg.Latency, "of a message between nodes")
	f.DurationVar(&cfg.WorkerStart, "worker-start", cfg.WorkerStart, "of a worker's slot, the first time")
	f.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "of all that is drawn")
	if err := f.Parse(args); err != nil {
		return err
	}
	var counts []int
	for word := range strings.SplitSeq(*nodes, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-nodes %q: want numbers above zero, between commas", *nodes)
		}
		counts = append(counts, n)
	}
	if cfg.Owners < 1 || cfg.Owners > slices.Min(counts) {
		return fmt.Errorf("-owners %d: want 1 to the number of nodes", cfg.Owners)
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(out, "%d tasks, log-normal, median %v, sigma %v, arguments on one node for %.0f %%; %d slots a node\n",
		cfg.Tasks, cfg.Median, cfg.Sigma, 100*cfg.Local, cfg.CPUs)
	fmt.Fprintln(out, "nodes\towners\tmakespan\tof ideal\tof bound\treal\ttasks/s\tleases\tplaced/s\tmessages\tlocal\treports/s\treports B/s\t")
	for _, n := range counts {
		cfg.Nodes = n
		r, err := Run(cfg)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%d\t%d\t%v\t%.3f\t%.3f\t%v\t%.0f\t%d\t%.0f\t%d\t%.0f %%\t%.1f\t%.0f\t\n", n, cfg.Owners, r.Makespan.Round(time.Millisecond),
			ratio(r.Makespan, r.Greedy), ratio(r.Makespan, r.Bound), r.Real.Round(10*time.Millisecond), float64(cfg.Tasks)/r.Real.Seconds(), r.Leases,
			float64(r.Leases)/r.Choosing.Seconds(), r.Messages, 100*float64(r.Local)/float64(max(r.Local+r.Moved, 1)), r.Reports, r.ReportBytes)
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if err := printConvergence(out, counts, cfg.Seed); err != nil {
		return err
	}
	return out.Flush()
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
