package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

func main() {
	each := flag.Duration("time", 30*time.Second, "how long each target runs")
	within := flag.Duration("within", 0, "how long all of them may take, builds too: what is left is shared out each time one begins (0: as long as -time makes it)")
	flag.Parse()
	if err := run(flag.Args(), *each, *within); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

// target is one fuzz target.
type target struct{ pkg, name string }

func run(pkgs []string, each, within time.Duration) error {
	end := time.Now().Add(within)
	all, err := find(pkgs)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(context.Background())
	g.SetLimit(runtime.NumCPU())
	for i, t := range all {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil // another has failed
			}
			long := each
			if within > 0 {
				long = share(time.Until(end), len(all)-i, runtime.NumCPU())
			}
			out, err := t.fuzz(long)
			if err != nil && endedLate(out) {
				_, err = t.fuzz(long)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", t.pkg, t.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// share is what one of several targets may have of the time that is left, where so many run at once: some of it goes for builds, which the next ones
// make up for. None is left out.
func share(left time.Duration, targets, atOnce int) time.Duration {
	rounds := (targets + atOnce - 1) / atOnce
	return max(left/time.Duration(rounds)-build, least).Truncate(time.Second)
}

const (
	build = 10 * time.Second // about what one with coverage takes
	least = 5 * time.Second
)

func (t target) fuzz(each time.Duration) (string, error) {
	out, err := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), "-parallel", "1", t.pkg).CombinedOutput()
	fmt.Printf("%s %s\n%s", t.pkg, t.name, out)
	return string(out), err
}

// endedLate tells whether a run failed since its time was over, and for nothing else. Before Go 1.27 a loaded machine takes the end of -fuzztime for a failure
// now and then (https://go.dev/issue/75804); an input that fails is always written to a file.
func endedLate(out string) bool {
	return strings.Contains(out, "\n    context deadline exceeded\nFAIL\n") && !strings.Contains(out, "Failing input written") && !strings.Contains(out, "panic")
}

// find lists the fuzz targets of packages; of the whole module if none are named.
func find(named []string) ([]target, error) {
	if len(named) == 0 {
		named = []string{"./..."}
	}
	pkgs, err := output("go", append([]string{"list"}, named...)...)
	if err != nil {
		return nil, err
	}
	var all []target
	for pkg := range strings.FieldsSeq(pkgs) {
		listing, err := output("go", "test", "-list", "^Fuzz", pkg)
		if err != nil {
			return nil, err
		}
		for _, name := range targets(listing) {
			all = append(all, target{pkg, name})
		}
	}
	return all, nil
}

// targets picks the fuzz targets out of what `go test -list` prints.
func targets(listing string) []string {
	var out []string
	for line := range strings.Lines(listing) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Fuzz") {
			out = append(out, name)
		}
	}
	return out
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(b), nil
}
