package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mobula/internal/tools/checkout"
	"mobula/internal/tools/quiet"
)

const usage = `make deep ARGS="[flags]"   runs parts of the deep run, each on a clone of a commit

examples:
  make deep ARGS=--list                       the parts, and when each has run
  make deep ARGS="--part fuzz"                one part, of HEAD
  make deep ARGS="--part fuzz --commit v0.6"  of another commit
  make deep                                   the part that has waited longest

flags:
`

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "deep:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("deep", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the parts, and when each has run")
	name := flags.String("part", "", "the part to run (the one that has waited longest)")
	commit := flags.String("commit", "HEAD", "the commit to run it on")
	seed := flags.Uint64("seed", 0, "the parts seeds and stress: instead of a new number")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag: -part names a part", flags.Arg(0))
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs/deep.md")
	rows, err := last(file)
	if err != nil {
		return err
	}
	if *list {
		show(out, rows, time.Now())
		return nil
	}
	if *name == "" {
		*name = longestAgo(rows)
	}
	p, err := named(*name)
	if err != nil {
		return err
	}
	release, err := quiet.Hold("the deep run, part " + p.name)
	if err != nil {
		return err
	}
	defer release()
	if *seed == 0 {
		*seed = uint64(time.Now().Unix())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir := filepath.Join(root, ".cache/deep/tree")
	short, err := checkout.Bring(ctx, root, dir, *commit)
	if err != nil {
		return err
	}
	begin := time.Now()
	failed := p.run(ctx, dir, *seed, out)
	if ctx.Err() != nil {
		return errors.New("stopped: no row is written")
	}
	r := record{day: begin, commit: short, part: p.name, result: "passed", minutes: time.Since(begin).Minutes()}
	if failed != nil {
		r.result = "failed: " + failed.Error()
	}
	if p.draws() {
		r.result += ", seed " + strconv.FormatUint(*seed, 10)
	}
	fmt.Fprintln(out, r)
	return errors.Join(failed, add(file, r))
}

// run runs the commands of a part in the clone.
func (p part) run(ctx context.Context, dir string, seed uint64, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has taken its %v", limit))
	defer cancel()
	for _, c := range p.commands {
		fmt.Fprintln(out, "===", c)
		cmd := exec.CommandContext(ctx, "sh", "-c", c)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
		cmd.Env = append(ofNoMake(os.Environ()), fmt.Sprintf("SEED=%d", seed), "REQUIRE_PYTHON=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = 10 * time.Second
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", c, err)
		}
	}
	return nil
}

// ofNoMake leaves out what a make passes on to those that it starts: the ARGS of make deep are not those of the parts.
func ofNoMake(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "ARGS" || name == "MAKELEVEL" || name == "MFLAGS" || strings.HasPrefix(name, "MAKEFLAGS") || strings.HasPrefix(name, "MAKEOVERRIDES")
	})
}

// show prints the parts with their last rows, and what is not fresh.
func show(out io.Writer, rows map[string]record, now time.Time) {
	for _, p := range parts {
		r, ok := rows[p.name]
		ran := "never ran"
		if ok {
			ran = fmt.Sprintf("%s %s %s", r.day.Format(time.DateOnly), r.commit, r.result)
			if now.Sub(r.day) > fresh {
				ran += ", too long ago"
			}
		}
		fmt.Fprintf(out, "%-14s %s\n%-14s   %s\n", p.name, p.says, "", ran)
	}
}

// longestAgo is the part that has not run for the longest time.
func longestAgo(rows map[string]record) string {
	oldest := parts[0].name
	for _, p := range parts {
		if rows[p.name].day.Before(rows[oldest].day) {
			oldest = p.name
		}
	}
	return oldest
}
