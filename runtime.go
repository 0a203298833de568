package mobula

import (
	"cmp"
	"context"

	"mobula/internal/node"
)

// engine connects the package to package node.
var engine runtimeEngine = nodeEngine{}

// nodeEngine starts nodes in this process and joins those of others.
type nodeEngine struct{}

func (nodeEngine) start(ctx context.Context, cfg startConfig) (*Cluster, error) {
	n, err := node.Start(ctx, nodeConfig(cfg))
	if err != nil {
		return nil, err
	}
	c, err := n.Attach(ctx, cfg.namespace)
	if err != nil {
		_ = n.Close(ctx) // the error of joining says more
		return nil, err
	}
	return &Cluster{client: c, node: n.Name(), address: n.Address(), close: func(ctx context.Context) error {
		err := c.Close(ctx)
		if e := n.Close(ctx); err == nil {
			err = e
		}
		return err
	}}, nil
}

func nodeConfig(cfg startConfig) node.Config {
	out := node.Config{
		Dir: cfg.dir, CPUs: cfg.cpus, StoreBytes: uint64(cfg.store), SpillURLs: cfg.spill,
		Processes: cfg.processes, Namespace: cfg.namespace, Logger: cfg.log, Resources: make(map[string]int64),
	}
	for name, amount := range cfg.resources {
		out.Resources[name] = int64(amount * 1000)
	}
	return out
}

func (nodeEngine) connect(ctx context.Context, address string, cfg connectConfig) (*Cluster, error) {
	d, err := node.Dial(ctx, address, node.DialConfig{Namespace: cfg.namespace, Logger: cfg.log})
	if err != nil {
		return nil, err
	}
	return &Cluster{client: d.Client, node: d.Welcome().Node, address: cmp.Or(address, node.DefaultAddress()), close: d.Close}, nil
}

func (nodeEngine) worker(ctx context.Context) (bool, error) { return node.Worker(ctx) }
