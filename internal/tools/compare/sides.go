package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// side is one of the two that are compared: a tree, with what is built of it.
type side struct {
	name        string
	dir         string
	mobench     string
	interpreter string // of Python, with which peers makes an environment of its own
}

// build builds a side's programs.
func build(ctx context.Context, name, dir string) (side, error) {
	s := side{name: name, dir: dir, mobench: filepath.Join(dir, "bin/mobench")}
	python, err := s.output(ctx, "sh", "python/interpreter.sh")
	if err != nil {
		return s, err
	}
	s.interpreter = strings.TrimSpace(string(python))
	for _, c := range [][]string{
		{"make", "--no-print-directory", "build"},
		{"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", s.mobench, "./benchmarks/mobench"},
	} {
		cmd := exec.CommandContext(ctx, c[0], c[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return s, fmt.Errorf("%s: %s: %w: %s", name, strings.Join(c, " "), err, out)
		}
	}
	return s, nil
}
