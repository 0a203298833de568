package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"mobula"
)

// setup says how a case wants its cluster; the zero value is the default configuration.
type setup struct {
	store int64  // bytes
	spill string // directory
	nodes int    // over nodes: how many there are, the driver's own not counted if that is inside the driver; 0: 2
}

// cluster is a runtime in one of the modes.
type cluster struct {
	*mobula.Cluster
	ctx   context.Context //nolint:containedctx // bound to the cluster
	node  *nodeProcess    // nil but in mode node
	nodes *nodeSet        // nil but over nodes

	stale                 time.Duration // figures of the store may be so old
	submitted, unfinished int
}

// start starts a runtime in the bench's mode.
func (b *bench) start(ctx context.Context, s setup) (*cluster, error) {
	if slices.Contains(modesOverNodes, b.mode) {
		return b.startSeveral(ctx, s)
	}
	c, node, err := startCluster(ctx, b.mode, b.dir, s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", b.mode, err)
	}
	return &cluster{Cluster: c, ctx: c.Context(ctx), node: node, stale: b.stale}, nil
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
func (cl *cluster) did(tasks int) { cl.submitted += tasks }

// cancelled notes tasks that were submitted and cancelled as they ran: they have not finished.
func (cl *cluster) cancelled(tasks int) {
	cl.did(tasks)
	cl.unfinished += tasks
}

// check compares the node's counts with the number of tasks submitted: each was entered in the task table, and ended
// there, once. A task that nobody waited for may end a moment later.
func (cl *cluster) check(ctx context.Context) error {
	for end := time.Now().Add(10 * time.Second); ; {
		s, err := cl.status(ctx)
		if err != nil {
			return err
		}
		var entered, finished, failed, retried uint64
		for _, j := range s.Jobs {
			entered, finished, failed, retried = entered+j.Submitted, finished+j.Finished, failed+j.Failed, retried+j.Retried
		}
		want, ended := uint64(cl.submitted), uint64(cl.submitted-cl.unfinished)
		if entered == want && finished == ended && failed == 0 && retried == 0 {
			return nil
		}
		if entered > want || finished > ended || failed > 0 || time.Now().After(end) {
			return fmt.Errorf("%d tasks were submitted, and %d not cancelled; the node entered %d, finished %d, failed %d and retried %d", want, ended, entered, finished, failed, retried)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// status asks the node how it is; every part must answer.
func (cl *cluster) status(ctx context.Context) (mobula.NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		s, err := cl.Status(ctx)
		if err != nil {
			return s, fmt.Errorf("the node's counters: %w", err)
		}
		if len(s.Silent) == 0 {
			return s, nil
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return s, fmt.Errorf("the node's counters: %v did not answer: %w", s.Silent, err)
		}
	}
}

// store gives the store's figures as they are now: a node counts them every other second.
func (cl *cluster) store(ctx context.Context) (mobula.StoreState, error) {
	for begun := time.Now(); ; {
		s, err := cl.status(ctx)
		if err != nil || time.Duration(s.Store.Age) < cl.stale+time.Since(begun) {
			return s.Store, err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return s.Store, err
		}
	}
}

// empty waits until there is no object: what was released is free, and the next one takes its place.
func (cl *cluster) empty(ctx context.Context) error {
	for {
		page, err := cl.ListObjects(ctx, mobula.Query{Limit: 1})
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		if page.Total == 0 {
			return nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("%d objects are still there: %w", page.Total, err)
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
	if cl.nodes != nil {
		err = errors.Join(err, cl.nodes.stop())
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
