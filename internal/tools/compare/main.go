package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"mobula/internal/tools/checkout"
	"mobula/internal/tools/quiet"
)

const usage = `make bench-compare BASE=REVISION [ARGS="..."]   compares the work tree with a commit

examples:
  make bench-compare BASE=HEAD~1                          every row, ten minutes
  make bench-compare BASE=HEAD                            what a change not committed yet does
  make bench-compare BASE=v0.6 ARGS="task-sync node"      rows of a name, and those of a mode
  make bench-compare BASE=HEAD~1 ARGS="-time 30m -json"   more rounds; an object a row

flags:
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench-compare:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench-compare", flag.ContinueOnError)
	base := flags.String("base", "", "the commit to compare with")
	budget := flags.Duration("time", 10*time.Minute, "what all of it may take, builds too: it begins no round that would end later")
	asJSON := flags.Bool("json", false, "print one JSON object a row, not a table")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *base == "" {
		return errors.New("BASE is not set: it names the commit to compare with, as in make bench-compare BASE=HEAD~1")
	}
	rows, err := plan(flags.Args())
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	release, err := quiet.Hold("bench-compare")
	if err != nil {
		return err
	}
	defer release()
	begin := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := filepath.Join(root, ".cache/compare/base")
	short, err := checkout.Bring(ctx, root, dir, *base)
	if err != nil {
		return err
	}
	old, err := build(ctx, "base", dir)
	if err != nil {
		return err
	}
	tree, err := build(ctx, "new", root)
	if err != nil {
		return err
	}
	rounds := 0
	for longest := time.Duration(0); time.Since(begin)+longest < *budget; rounds++ {
		at := time.Now()
		fmt.Fprintf(os.Stderr, "round %d, %.1f minutes so far\n", rounds+1, time.Since(begin).Minutes())
		round(ctx, rows, tree, old, rounds)
		if ctx.Err() != nil {
			break
		}
		longest = max(longest, time.Since(at))
	}
	if *asJSON {
		return reportJSON(out, rows, short)
	}
	report(out, rows, short, rounds, time.Since(begin))
	return ctx.Err()
}

// round runs each row once on both sides; in the next round the other side is first.
func round(ctx context.Context, rows []*row, tree, old side, n int) {
	for _, r := range rows {
		if r.failed != "" {
			continue
		}
		sides := []side{tree, old}
		if n%2 == 1 {
			sides = []side{old, tree}
		}
		for _, s := range sides {
			f, err := s.bounded(ctx, r)
			if err != nil {
				if ctx.Err() == nil {
					r.failed = s.name + ": " + err.Error()
				}
				break
			}
			r.unit, r.rate = f.unit, f.rate
			cost := f.value
			if f.rate {
				cost = 1 / f.value
			}
			if s.name == tree.name {
				r.news = append(r.news, cost)
			} else {
				r.bases = append(r.bases, cost)
			}
		}
	}
}
