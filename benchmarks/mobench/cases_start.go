package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// idleLimit is from the project's list of bounds.
const idleLimit = 60 * mib

// idle is the memory of a runtime in its default configuration that has run one task and then nothing: all
// its processes, and what the segment has beside them.
func idle(ctx context.Context, b *bench) (*report, error) {
	var last usage
	s, err := b.measureIdle(ctx, func(pid int) (float64, error) {
		last = usageOf(pid)
		return float64(last.total()) / mib, nil
	})
	if err != nil {
		return nil, err
	}
	r := &report{unit: "MiB", samples: s}
	r.add("processes", last.processes)
	r.add("pss_mib", float64(last.pss)/mib)
	r.add("segment_outside_mib", float64(last.outside())/mib)
	r.add("limit_mib", idleLimit/mib)
	return r, nil
}

// measureIdle makes each sample of a process that runs such a runtime, and all below it, after a pause.
func (b *bench) measureIdle(ctx context.Context, sample func(pid int) (float64, error)) ([]float64, error) {
	return b.measure(ctx, func(_ context.Context, _ int) (_ float64, err error) {
		c, err := startChild(role{Kind: "idle", Mode: b.mode, Dir: b.dir})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, c.stop()) }()
		if _, err := c.line(); err != nil {
			return 0, err
		}
		if err := pause(ctx, b.idle); err != nil {
			return 0, err
		}
		return sample(c.cmd.Process.Pid)
	})
}

// idleCPULimit is from the project's list of bounds, in percent of a core.
const idleCPULimit = 0.2

// idleCPU is the processor time of a runtime in its default configuration that has nothing to do, after its first task and a pause: of all its
// processes, the driver's too.
func idleCPU(ctx context.Context, b *bench) (*report, error) {
	s, err := b.measureIdle(ctx, func(pid int) (float64, error) {
		begun, used := time.Now(), processorTime(pid)
		if err := pause(ctx, 3*b.idle); err != nil {
			return 0, err
		}
		return 100 * float64(processorTime(pid)-used) / float64(time.Since(begun)), nil
	})
	r := &report{unit: "%", samples: s}
	r.add("limit", idleCPULimit)
	return r, err
}

// coldStart is the time from the start of a process until it has a task's result.
func coldStart(ctx context.Context, b *bench) (*report, error) {
	s, err := b.measure(ctx, func(_ context.Context, _ int) (_ float64, err error) {
		begun := time.Now()
		c, err := startChild(role{Kind: "cold", Mode: b.mode, Dir: b.dir})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, c.stop()) }()
		said, err := c.line()
		t := ms(begun)
		if err == nil && said != "ready" {
			err = fmt.Errorf("the child said %q", said)
		}
		return t, err
	})
	return &report{unit: "ms", samples: s}, err
}
