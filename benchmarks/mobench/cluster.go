package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
)

// setup says how a case wants its cluster; the zero value is the default configuration.
type setup struct {
	store int64  // bytes
	spill string // directory
}

// cluster is a runtime in one of the modes.
type cluster struct {
	*mobula.Cluster
	ctx  context.Context //nolint:containedctx // bound to the cluster
	node *nodeProcess    // nil but in mode node

	base      int64 // tasks that the node had finished when we came
	submitted int64
}

// start starts a runtime in the bench's mode.
func (b *bench) start(ctx context.Context, s setup) (*cluster, error) {
	c, node, err := startCluster(ctx, b.mode, b.dir, s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", b.mode, err)
	}
	return &cluster{Cluster: c, ctx: c.Context(ctx), node: node}, nil
}

// startCluster is start without a bench, for child processes.
func startCluster(ctx context.Context, mode, dir string, s setup) (*mobula.Cluster, *nodeProcess, error) {
	if mode == separate {
		node, err := startNode(dir, s)
		if err != nil {
			return nil, nil, err
		}
		c, err := mobula.Connect(ctx, node.address)
		if err != nil {
			return nil, nil, errors.Join(err, node.stop())
		}
		return c, node, nil
	}
	var opts []mobula.StartOption
	if s.store > 0 {
		opts = append(opts, mobula.WithStore(s.store))
	}
	if s.spill != "" {
		opts = append(opts, mobula.WithSpill(s.spill))
	}
	if mode == process {
		opts = append(opts, mobula.WithProcesses())
	}
	c, err := mobula.Start(ctx, opts...)
	return c, nil, err
}

// did notes tasks that were submitted.
func (cl *cluster) did(tasks int) { cl.submitted += int64(tasks) }

// check compares the node's count of finished tasks with the number submitted. A task that nobody waited
// for may end a moment later.
func (cl *cluster) check(ctx context.Context) error {
	for end := time.Now().Add(10 * time.Second); ; {
		s, err := cl.stats(ctx)
		if err != nil {
			return err
		}
		if s.Tasks == cl.submitted {
			return nil
		}
		if s.Tasks > cl.submitted || time.Now().After(end) {
			return fmt.Errorf("%d tasks were submitted, the node finished %d", cl.submitted, s.Tasks)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// stats asks the node what it counted.
func (cl *cluster) stats(ctx context.Context) (mobula.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	s, err := cl.Stats(ctx)
	if err != nil {
		return s, fmt.Errorf("the node's counters: %w", err)
	}
	return s, nil
}

// empty waits until nothing is allocated in the store.
func (cl *cluster) empty(ctx context.Context) error {
	for {
		s, err := cl.stats(ctx)
		if err != nil || s.Allocated == 0 {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("%d bytes are still allocated in the store: %w", s.Allocated, err)
		}
	}
}

// settle lets the runtime end what nobody waits for: the references of the last run.
func (cl *cluster) settle(ctx context.Context) error { return pause(ctx, 50*time.Millisecond) }

// end closes the cluster, and its node.
func (cl *cluster) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	err := cl.Close(ctx)
	if cl.node != nil {
		err = errors.Join(err, cl.node.stop())
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
