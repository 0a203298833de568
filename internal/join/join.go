package join

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"

	"mobula/chaos"
	"mobula/internal/client"
	"mobula/internal/fault"
	"mobula/internal/node"
	"mobula/wire"
)

// Python says how Python workers run.
type Python = node.Python

// Config configures the node that a program starts; zero means not set.
type Config struct {
	Store     int64 // bytes
	Spill     []string
	Dir       string
	CPUs      float64
	Resources map[string]float64
	Labels    map[string]string
	Processes bool
	Namespace string
	Log       *slog.Logger
	Output    io.Writer
	Python    *Python     // nil: no Python
	Faults    *chaos.Plan // nil: none
}

// ConnectConfig configures the connection to a node.
type ConnectConfig struct {
	Namespace string
	Log       *slog.Logger
	Python    *Python // nil: no Python
	Token     string  // to join a cluster on other machines; empty: MOBULA_TOKEN
}

// Session is a program's connection to the runtime.
type Session struct {
	Client  *client.Client
	Node    string                          // its name
	Address string                          // where others of this user find the node
	Leave   func(ctx context.Context) error // ends the session, and the node if it is ours
}

// Context binds ctx to the session: calls made with the context that it gives go to the session.
func (s *Session) Context(ctx context.Context) context.Context {
	return client.WithTask(ctx, s.Client.Root())
}

// Start starts a node in this process, and joins it.
func Start(ctx context.Context, cfg Config) (*Session, error) {
	if err := node.NoWorker(); err != nil {
		return nil, err
	}
	ncfg, tel, err := cfg.Node()
	if err != nil {
		return nil, err
	}
	end, err := follow(cfg.Faults, &ncfg)
	if err != nil {
		return nil, err
	}
	others, err := programs(ctx, cfg.Python)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	s, err := startNode(ctx, ncfg, tel, others)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	leave := s.Leave
	s.Leave = func(ctx context.Context) error {
		if cfg.Faults != nil {
			cfg.Faults.Quiet() // a frozen or held process could not leave
		}
		err := leave(ctx)
		return cmp.Or(err, end())
	}
	return s, nil
}

// startNode starts a node in this process, and joins it. The node ends with the session.
func startNode(ctx context.Context, cfg node.Config, tel node.Telemetry, others []wire.Program) (*Session, error) {
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	var c *client.Client
	if err = n.StartTelemetry(tel); err == nil {
		c, err = n.Attach(ctx, "", others...) // "" is the node's namespace
	}
	if err != nil {
		_ = n.Close(context.WithoutCancel(ctx)) // the error of joining says more
		return nil, err
	}
	return &Session{Client: c, Node: n.Name(), Address: n.Address(), Leave: func(ctx context.Context) error {
		err := c.Close(ctx)
		return cmp.Or(err, n.Close(ctx))
	}}, nil
}

// Connect joins a node that is running on this machine, or a cluster at HOST:PORT.
func Connect(ctx context.Context, address string, cfg ConnectConfig) (*Session, error) {
	if err := node.NoWorker(); err != nil {
		return nil, err
	}
	if isNetwork(address) {
		return connectRemote(ctx, address, cfg)
	}
	others, err := programs(ctx, cfg.Python)
	if err != nil {
		return nil, err
	}
	d, err := node.Dial(ctx, address, node.DialConfig{Namespace: cfg.Namespace, Logger: cfg.Log, Others: others})
	if err != nil {
		return nil, err
	}
	return &Session{Client: d.Client, Node: d.Welcome().Node, Address: d.Address(), Leave: d.Close}, nil
}

// Worker serves until the node lets the worker go, if this process is one.
func Worker(ctx context.Context) (is bool, err error) { return node.Worker(ctx) }

// follow lets a node follow a test's plan; call end when the node has stopped.
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

// Node is the node that the program's options describe.
func (cfg Config) Node() (node.Config, node.Telemetry, error) {
	out, tel, err := node.LoadConfig(cfg.settings(), cfg.Log)
	out.WorkerOutput = cfg.Output
	return out, tel, err
}

// settings are the program's options as settings of the node; others are left to the environment, the file and the
// defaults.
func (cfg Config) settings() map[string]any {
	out := make(map[string]any)
	if cfg.Dir != "" {
		out["dir"] = cfg.Dir
	}
	if cfg.CPUs != 0 {
		out["cpus"] = cfg.CPUs
	}
	if cfg.Store != 0 {
		out["store.size"] = cfg.Store
	}
	if cfg.Spill != nil {
		out["store.spill"] = anys(cfg.Spill)
	}
	if cfg.Processes {
		out["workers.processes"] = true
	}
	if cfg.Namespace != "" {
		out["namespace"] = cfg.Namespace
	}
	if cfg.Resources != nil {
		amounts := make(map[string]any, len(cfg.Resources))
		for name, amount := range cfg.Resources {
			amounts[name] = amount
		}
		out["resources"] = amounts
	}
	if cfg.Labels != nil {
		texts := make(map[string]any, len(cfg.Labels))
		for key, value := range cfg.Labels {
			texts[key] = value
		}
		out["labels"] = texts
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

// programs are what workers of other languages run.
func programs(ctx context.Context, python *Python) ([]wire.Program, error) {
	if python == nil {
		return nil, nil
	}
	p, err := python.Program(ctx)
	if err != nil {
		return nil, err
	}
	return []wire.Program{*p}, nil
}
