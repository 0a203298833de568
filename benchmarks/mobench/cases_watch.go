package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"mobula"
)

// traceBound and listBound are the most that watching may cost, percent.
const (
	traceBound = 3
	listBound  = 5
)

// traceOverhead compares a runtime that traces 1 % with one that traces nothing: pairs of the same work, in
// turn, each first every other time. The value is the greater of the two medians.
func traceOverhead(ctx context.Context, b *bench) (*report, error) {
	before := b.sink.bytes.Load()
	r := &report{unit: "%"}
	if err := b.traced(ctx, r); err != nil {
		return nil, err
	}
	exported := b.sink.bytes.Load() - before // the last ones at the child's end
	r.add("exported_bytes", exported)
	if exported == 0 && b.pairs*b.traceTasks > 10_000 {
		return nil, errors.New("no span was exported: nothing was traced")
	}
	return r, nil
}

// traced runs the pairs.
func (b *bench) traced(ctx context.Context, r *report) (err error) {
	off, err := startChild(role{Kind: "trace", Mode: b.mode, Dir: b.dir}, untraced()...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, off.stop()) }()
	on, err := startChild(role{Kind: "trace", Mode: b.mode, Dir: b.dir}, b.sink.tracing(func(string) string { return "" })...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.stop()) }()
	works := []struct {
		name, command string
		n             int
	}{{"task_sync", "sync", b.traceRounds}, {"task_async", "async", b.traceTasks}}
	for _, w := range works {
		var over []float64
		for pair := range b.pairs + 1 {
			a, c, err := inPair(ctx, pair%2 == 1, func() (float64, error) { return off.seconds(w.command, w.n) }, func() (float64, error) { return on.seconds(w.command, w.n) })
			if err != nil {
				return err
			}
			if pair > 0 { // the first warms up
				over = append(over, (c/a-1)*100)
			}
			b.log("%s %s: %s: pair %d of %d: %s %%", b.name, b.mode, w.name, pair, b.pairs, number((c/a-1)*100))
		}
		low, high := interval(over)
		if len(r.samples) == 0 || median(over) > median(r.samples) {
			r.samples = over
		}
		r.add(w.name, median(over))
		r.add(w.name+"_low", low)
		r.add(w.name+"_high", high)
		if low > traceBound {
			r.failed = fmt.Sprintf("%s: the whole interval, %s to %s %%, is above %d %%", w.name, number(low), number(high), traceBound)
		}
	}
	return nil
}

// inPair does both, b first if turned.
func inPair(ctx context.Context, turned bool, a, b func() (float64, error)) (x, y float64, err error) {
	if err := context.Cause(ctx); err != nil {
		return 0, 0, err
	}
	if turned {
		y, err = b()
		if err == nil {
			x, err = a()
		}
		return x, y, err
	}
	x, err = a()
	if err == nil {
		y, err = b()
	}
	return x, y, err
}

// interval is the 95 % interval of the median: between two order statistics, no distribution assumed. With few
// samples it is all of them.
func interval(samples []float64) (low, high float64) {
	s := slices.Clone(samples)
	slices.Sort(s)
	n := len(s)
	// k is the greatest with P(fewer than k of n fair coins show heads) <= 2.5 %.
	k, p := 0, 1.0
	for range n {
		p /= 2
	}
	for tail := p; tail <= 0.025 && k < n/2; {
		k++
		p *= float64(n-k+1) / float64(k)
		tail += p
	}
	k = max(k, 1)
	return s[k-1], s[n-k]
}

// seconds has a trace child do its work.
func (c *child) seconds(command string, n int) (float64, error) {
	if _, err := fmt.Fprintf(c.in, "%s %d\n", command, n); err != nil {
		return 0, fmt.Errorf("child process %d: %w", c.cmd.Process.Pid, err)
	}
	text, err := c.line()
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(text, 64)
}

// serveTrace does what the parent asks for, and answers with the seconds it took.
func serveTrace(ctx context.Context) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var command string
		var n int
		if _, err := fmt.Sscan(lines.Text(), &command, &n); err != nil {
			return fmt.Errorf("command %q: %w", lines.Text(), err)
		}
		begun := time.Now()
		var err error
		switch command {
		case "sync":
			_, err = taskRounds(ctx, n)
		case "async":
			_, err = taskBurst(ctx, n)
		default:
			err = fmt.Errorf("command %q is none", command)
		}
		if err != nil {
			return err
		}
		fmt.Println(time.Since(begun).Seconds())
	}
	return lines.Err()
}

// listOverhead compares bursts of tasks with and without a loop that lists tasks, while a million tasks wait for
// an argument.
func listOverhead(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		g, err := closeGates(cl.ctx, 1, mobula.Resources{CPU: mobula.NoCPU})
		if err != nil {
			return nil, err
		}
		defer g.remove()
		waiting := make([]mobula.Ref[int], b.listed)
		for i := range waiting {
			waiting[i] = after.Go(cl.ctx, g.refs[0], mobula.V(i))
		}
		cl.did(1 + b.listed)
		var over []float64
		lists := 0
		for pair := range b.listPairs + 1 {
			alone, watched, err := inPair(cl.ctx, pair%2 == 1,
				func() (float64, error) { return taskBurst(cl.ctx, b.tasks) },
				func() (float64, error) {
					stop := cl.list(&lists)
					v, err := taskBurst(cl.ctx, b.tasks)
					return v, errors.Join(err, stop())
				})
			if err != nil {
				return nil, err
			}
			cl.did(2 * b.tasks)
			cost := (1 - watched/alone) * 100
			if pair > 0 {
				over = append(over, cost)
			}
			b.log("%s %s: pair %d of %d: %s %%, %d lists so far", b.name, b.mode, pair, b.listPairs, number(cost), lists)
		}
		if err := g.open(cl.ctx); err != nil {
			return nil, err
		}
		got, err := mobula.GetAll(cl.ctx, waiting)
		if err := numbered(got, 0, err); err != nil {
			return nil, err
		}
		for _, w := range waiting {
			w.Release() // by and by, not all at the end of the job
		}
		low, high := interval(over)
		r := &report{unit: "%", samples: over}
		r.add("low", low)
		r.add("high", high)
		r.add("tasks", b.listed)
		r.add("lists", lists)
		if median(over) >= listBound {
			r.failed = fmt.Sprintf("listing costs %s %% of throughput, want less than %d %%", number(median(over)), listBound)
		}
		return r, nil
	})
}

// list asks for tasks again and again until it is stopped; every answer must know of the tasks that wait.
func (cl *cluster) list(count *int) (stop func() error) {
	quit, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			page, err := cl.ListTasks(cl.ctx, mobula.Query{})
			if err == nil && len(page.Rows) == 0 {
				err = fmt.Errorf("a list of %d tasks has no rows", page.Total)
			}
			if err != nil {
				done <- fmt.Errorf("list tasks: %w", err)
				return
			}
			*count++
			select {
			case <-quit:
				done <- nil
				return
			default:
			}
		}
	}()
	return func() error {
		close(quit)
		return <-done
	}
}
