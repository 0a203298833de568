package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// row is a figure that is compared. Its values are costs: a rate is turned over, so that more is slower.
type row struct {
	name string // "task-sync embedded", "task-sync python"
	unit string
	rate bool
	// by side and round; a round that failed has none
	news, bases []float64
	failed      string // the first failure
}

// cases are rows of mobench in each of its modes, short ones: ten of them cost a round less than the noise of a longer one would.
var cases = words("task-sync task-async actor-sync actor-async actor-create cancel put-small get-small wait-1k chain-1000 tree-10k args-10k returns-3k")

var modes = words("embedded process node")

// workloads are rows of the benchmarks beside peers, of ours alone.
var workloads = words("task-sync chain actor-sync put-1k get-1k")

const pythonMode = "python"

// plan is the rows that some words choose: a case, a mode, or all for none.
func plan(chosen []string) ([]*row, error) {
	var rows []*row
	add := func(name, mode string) {
		if len(chosen) == 0 || slices.Contains(chosen, name) || slices.Contains(chosen, mode) {
			rows = append(rows, &row{name: name + " " + mode})
		}
	}
	for _, c := range cases {
		for _, m := range modes {
			add(c, m)
		}
	}
	for _, w := range workloads {
		add(w, pythonMode)
	}
	for _, c := range chosen {
		if !slices.Contains(slices.Concat(cases, modes, workloads, []string{pythonMode}), c) {
			return nil, fmt.Errorf("there is no row %q: there are %s, in %s, %s", c, strings.Join(slices.Concat(cases, workloads), ", "), strings.Join(modes, ", "), pythonMode)
		}
	}
	return rows, nil
}

// figure is what one run of a row gave.
type figure struct {
	value float64
	unit  string
	rate  bool
}

// longest is what one run of a row may take, which is a second or less as a rule: a change that makes a row a hundred times slower is to be told in time.
var longest = time.Minute

// bounded runs a row once on one side; a run that takes too long fails.
func (s side) bounded(ctx context.Context, r *row) (figure, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("it had not ended after %v", longest))
	defer cancel()
	f, err := s.run(ctx, r)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return f, err
}

// run runs a row once on one side.
func (s side) run(ctx context.Context, r *row) (figure, error) {
	name, mode, _ := strings.Cut(r.name, " ")
	if mode == pythonMode {
		return s.python(ctx, name)
	}
	out, err := s.output(ctx, s.mobench, "-quiet", "-json", "-runs", "1", "-mode", mode, name)
	if err != nil {
		return figure{}, err
	}
	var f struct {
		Value   float64
		Unit    string
		Skipped string
		Error   string
	}
	if err := json.Unmarshal(out, &f); err != nil || f.Value <= 0 {
		return figure{}, fmt.Errorf("mobench %s: no value: %s%s%s", r.name, f.Skipped, f.Error, bytes.TrimSpace(out))
	}
	return figure{f.Value, f.Unit, strings.HasSuffix(f.Unit, "/s")}, nil
}

// python runs a workload of the benchmarks beside peers, on ours alone. Its first figure is the one that counts.
func (s side) python(ctx context.Context, name string) (figure, error) {
	out, err := s.output(ctx, s.interpreter, "-m", "peers", "--systems", "mobula", "--repetitions", "1", "--memory-repetitions", "0", "--json", "--quiet", name)
	if err != nil {
		return figure{}, err
	}
	for line := range bytes.Lines(out) {
		var f struct {
			Workload string
			Unit     string
			More     bool `json:"more_is_better"`
			Median   *float64
		}
		if err := json.Unmarshal(line, &f); err == nil && f.Workload == name && f.Median != nil {
			return figure{*f.Median, f.Unit, f.More}, nil
		}
	}
	return figure{}, fmt.Errorf("peers %s: no figure: %s", name, bytes.TrimSpace(out))
}

// output runs a program of a side, and returns what it printed.
func (s side) output(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+filepath.Join(s.dir, "benchmarks"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with what it has started
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s%s", filepath.Base(program), strings.Join(args, " "), err, said.Bytes(), out)
	}
	return out, nil
}

func words(s string) []string { return strings.Fields(s) }
