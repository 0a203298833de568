package mobula

import (
	"context"
	"errors"

	"mobula/chaos"
	"mobula/internal/client"
	"mobula/internal/fault"
	"mobula/internal/node"
	"mobula/wire"
)

// engine connects the package to package node.
var engine runtimeEngine = nodeEngine{}

// nodeEngine starts nodes in this process and joins those of others.
type nodeEngine struct{}

func (nodeEngine) start(ctx context.Context, cfg startConfig) (*Cluster, error) {
	if err := node.NoWorker(); err != nil {
		return nil, err
	}
	ncfg, tel, err := node.LoadConfig(cfg.settings(), cfg.log)
	if err != nil {
		return nil, err
	}
	ncfg.WorkerOutput = cfg.output
	end, err := follow(cfg.faults, &ncfg)
	if err != nil {
		return nil, err
	}
	others, err := programs(ctx, cfg.python)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	n, err := node.Start(ctx, ncfg)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	var c *client.Client
	if err = n.StartTelemetry(tel); err == nil {
		c, err = n.Attach(ctx, "", others...) // the namespace is the node's
	}
	if err != nil {
		_ = n.Close(ctx) // the error of joining says more
		return nil, errors.Join(err, end())
	}
	return &Cluster{client: c, node: n.Name(), address: n.Address(), faults: cfg.faults, close: func(ctx context.Context) error {
		if cfg.faults != nil {
			cfg.faults.Quiet() // what is frozen or held cannot leave
		}
		err := c.Close(ctx)
		if e := n.Close(ctx); err == nil {
			err = e
		}
		if e := end(); err == nil {
			err = e
		}
		return err
	}}, nil
}

// follow has a node do what a test's plan says; end is for when it has stopped.
func follow(plan *chaos.Plan, cfg *node.Config) (end func() error, err error) {
	if plan == nil {
		return func() error { return nil }, nil
	}
	p := plan.Faults()
	if err := p.Check(fault.Mode{Processes: cfg.Processes}); err != nil {
		return nil, err
	}
	opened, err := p.Open()
	if err != nil {
		return nil, err
	}
	cfg.Chaos = p
	if !opened {
		return func() error { return nil }, nil
	}
	return p.Close, nil
}

// settings are the options as settings of the node; what was not said is left to the environment,
// the file and the defaults.
func (cfg startConfig) settings() map[string]any {
	out := make(map[string]any)
	if cfg.dir != "" {
		out["dir"] = cfg.dir
	}
	if cfg.cpus != 0 {
		out["cpus"] = cfg.cpus
	}
	if cfg.store != 0 {
		out["store.size"] = cfg.store
	}
	if cfg.spill != nil {
		out["store.spill"] = anys(cfg.spill)
	}
	if cfg.processes {
		out["workers.processes"] = true
	}
	if cfg.namespace != "" {
		out["namespace"] = cfg.namespace
	}
	if cfg.resources != nil {
		amounts := make(map[string]any, len(cfg.resources))
		for name, amount := range cfg.resources {
			amounts[name] = amount
		}
		out["resources"] = amounts
	}
	return out
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

func (nodeEngine) connect(ctx context.Context, address string, cfg connectConfig) (*Cluster, error) {
	if err := node.NoWorker(); err != nil {
		return nil, err
	}
	others, err := programs(ctx, cfg.python)
	if err != nil {
		return nil, err
	}
	d, err := node.Dial(ctx, address, node.DialConfig{Namespace: cfg.namespace, Logger: cfg.log, Others: others})
	if err != nil {
		return nil, err
	}
	return &Cluster{client: d.Client, node: d.Welcome().Node, address: d.Address(), close: d.Close}, nil
}

// programs are what workers of other languages run.
func programs(ctx context.Context, python *node.Python) ([]wire.Program, error) {
	if python == nil {
		return nil, nil
	}
	p, err := python.Program(ctx)
	if err != nil {
		return nil, err
	}
	return []wire.Program{*p}, nil
}

func (nodeEngine) worker(ctx context.Context) (bool, error) { return node.Worker(ctx) }
