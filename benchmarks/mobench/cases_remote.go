package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mobula"
	"mobula/internal/netns/nodes"
)

func remoteTaskSync(ctx context.Context, b *bench) (*report, error) {
	return b.inTurn(ctx, func(ctx context.Context, cl *cluster) (func(int) ([]float64, error), error) {
		return func(n int) ([]float64, error) { return taskRounds(ctx, n, mobula.OnNode(cl.nodes.to[0])) }, nil
	})
}

func remoteTaskAsync(ctx context.Context, b *bench) (*report, error) {
	return b.atOnce(ctx, func(ctx context.Context, cl *cluster) (func(int) (float64, error), error) {
		return func(n int) (float64, error) { return taskBurst(ctx, n, mobula.OnNode(cl.nodes.to[0])) }, nil
	})
}

func remoteActorSync(ctx context.Context, b *bench) (*report, error) {
	return b.inTurn(ctx, func(ctx context.Context, cl *cluster) (func(int) ([]float64, error), error) {
		return actorRounds(ctx, cl, mobula.OnNode(cl.nodes.to[0]))
	})
}

// remoteLeases counts by the numbers of leases, which a node gives out in turn: that of a task before and that of one after.
func remoteLeases(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		on := mobula.OnNode(cl.nodes.to[0])
		s, err := b.measure(cl.ctx, func(ctx context.Context, run int) (float64, error) {
			before, err := cl.nextLease(ctx, on, 2*run+1)
			if err != nil {
				return 0, err
			}
			// Each run's tasks are of a class of their own, or they would use the leases of the run before.
			if _, err := taskBurst(ctx, b.leased, on, mobula.Resources{CPU: 1, Memory: int64(run + 1)}); err != nil {
				return 0, err
			}
			after, err := cl.nextLease(ctx, on, 2*run+2)
			cl.did(b.leased + 2)
			if err == nil && after <= before+1 {
				err = fmt.Errorf("after %d tasks the lease is %d, before them it was %d", b.leased, after, before)
			}
			return float64(after - before - 1), err
		})
		return &report{unit: "leases", samples: s}, err
	})
}

// nextLease runs a task on the first other node and gives the number of its lease. The task asks for so many thousandths of a CPU: with another
// number it is of another class, and has another lease.
func (cl *cluster) nextLease(ctx context.Context, on mobula.NodeOption, thousandths int) (uint64, error) {
	g, err := closeGates(ctx, 1, on, mobula.Resources{CPU: float64(thousandths) / 1000})
	if err != nil {
		return 0, err
	}
	newest, err := newestLease(ctx, cl.nodes.remote[0], cl.nodes.to[0])
	if err != nil {
		g.remove()
		return 0, err
	}
	return newest, g.open(ctx)
}

// newestLease asks a node for its workers' leases.
func newestLease(ctx context.Context, n *nodes.Node, id string) (newest uint64, err error) {
	var workers struct {
		Rows []struct {
			Node     string
			LeaseIDs []uint64 `json:"lease_ids"`
		}
	}
	if err := n.Ask(ctx, &workers, "list", "workers"); err != nil {
		return 0, err
	}
	for _, w := range workers.Rows {
		if w.Node != id && w.Node != n.Name { // the list is of all nodes
			continue
		}
		newest = max(newest, slices.Max(append(w.LeaseIDs, 0)))
	}
	return newest, nil
}

// remoteChain has every task on another node than the one before; anywhere_ms is the same with nodes chosen by the cluster.
func remoteChain(ctx context.Context, b *bench) (*report, error) {
	return b.in(ctx, setup{}, func(cl *cluster) (*report, error) {
		two := []mobula.NodeOption{mobula.OnNode(cl.nodes.ids[0]), mobula.OnNode(cl.nodes.ids[1])}
		once := func(ctx context.Context, on func(i int) []mobula.TaskOption) (float64, error) {
			begun := time.Now()
			x := inc.Go(ctx, mobula.V(0), on(0)...)
			for i := 1; i < b.chain; i++ {
				x = inc.Go(ctx, x, on(i)...)
			}
			cl.did(b.chain)
			v, err := x.Get(ctx)
			if err != nil || v != b.chain {
				return 0, fmt.Errorf("the chain of %d ends at %d, %w", b.chain, v, err)
			}
			return ms(begun), nil
		}
		inTurn := func(i int) []mobula.TaskOption { return []mobula.TaskOption{two[i%2]} }
		if _, err := once(cl.ctx, inTurn); err != nil { // workers start
			return nil, err
		}
		var anywhere []float64
		s, err := b.measure(cl.ctx, func(ctx context.Context, _ int) (float64, error) {
			v, err := once(ctx, func(int) []mobula.TaskOption { return nil })
			if err != nil {
				return 0, err
			}
			anywhere = append(anywhere, v)
			return once(ctx, inTurn)
		})
		r := &report{unit: "ms", samples: s}
		r.addSamples("anywhere_ms", anywhere)
		return r, err
	})
}
