package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	each := flag.Duration("time", 30*time.Second, "how long each target runs")
	flag.Parse()
	if err := run(*each); err != nil {
		fmt.Fprintln(os.Stderr, "fuzzall:", err)
		os.Exit(1)
	}
}

func run(each time.Duration) error {
	pkgs, err := output("go", "list", "./...")
	if err != nil {
		return err
	}
	for pkg := range strings.FieldsSeq(pkgs) {
		listing, err := output("go", "test", "-list", "^Fuzz", pkg)
		if err != nil {
			return err
		}
		for _, target := range targets(listing) {
			fmt.Printf("%s %s\n", pkg, target)
			cmd := exec.Command("go", "test", "-run", "^$", "-fuzz", "^"+target+"$", "-fuzztime", each.String(), pkg)
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s %s: %w", pkg, target, err)
			}
		}
	}
	return nil
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
