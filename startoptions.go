package mobula

import (
	"io"
	"log/slog"

	"mobula/chaos"
	"mobula/internal/join"
	"mobula/internal/labels"
)

// StartOption configures the node that Start makes. A setting without an option comes from its
// MOBULA_ environment variable, else the configuration file, else its default; `mobula config`
// lists all settings. An unknown name in the environment or the file is an error.
type StartOption func(*startConfig) error

// ConnectOption configures Connect.
type ConnectOption func(*connectConfig) error

type (
	startConfig   = join.Config
	connectConfig = join.ConnectConfig
)

func configOf(opts []StartOption) (cfg startConfig, err error) {
	for _, set := range opts {
		if err := set(&cfg); err != nil {
			return cfg, err
		}
	}
	return cfg, nil
}

// WithStore sets the object store's size in bytes: a hard limit. Default: 30 % of the machine's
// memory, as Ray.
func WithStore(bytes int64) StartOption {
	return func(c *startConfig) error {
		if bytes <= 0 {
			return invalid("WithStore of %d bytes, want more than 0", bytes)
		}
		c.Store = bytes
		return nil
	}
}

// WithSpill sets where objects go that do not fit in memory: directories or URLs (file://, s3://), used
// in turn. Default: a directory under the node's own. A program that spills to s3:// imports its driver:
// import _ "mobula/objectstore/spill/s3".
func WithSpill(urls ...string) StartOption {
	return func(c *startConfig) error { c.Spill = append(c.Spill, urls...); return nil }
}

// WithDir sets the directory for the node's sockets, logs, tables and spill files. Default: a
// temporary one, removed by Close.
func WithDir(path string) StartOption {
	return func(c *startConfig) error { c.Dir = path; return nil }
}

// WithCPUs sets how many CPUs the node offers: that many one-CPU tasks run at once. Default: the
// machine's.
func WithCPUs(n float64) StartOption {
	return func(c *startConfig) error {
		if n <= 0 {
			return invalid("WithCPUs(%g), want more than 0", n)
		}
		c.CPUs = n
		return nil
	}
}

// WithResource adds a resource of any other name, such as "GPU", for tasks to ask for. Resources from
// the environment or the file are ignored then.
func WithResource(name string, amount float64) StartOption {
	return func(c *startConfig) error {
		if name == "" || amount < 0 {
			return invalid("WithResource(%q, %g), want a name and 0 or more", name, amount)
		}
		if c.Resources == nil {
			c.Resources = make(map[string]float64)
		}
		c.Resources[name] = amount
		return nil
	}
}

// WithLabels gives the node labels, by which tasks may choose it (Labels). A key is a name such as "zone", or has a domain before it, as
// "example.com/rack". Labels from the environment or the file are ignored then.
func WithLabels(of map[string]string) StartOption {
	return func(c *startConfig) error {
		if err := labels.Check(of); err != nil {
			return invalid("WithLabels: %v", err)
		}
		c.Labels = of
		return nil
	}
}

// WithProcesses runs tasks in worker processes, this executable started again, instead of goroutines of
// this process: a task that crashes its process then takes nothing else with it. The program must call
// Main or WorkerMain before anything else.
func WithProcesses() StartOption {
	return func(c *startConfig) error { c.Processes = true; return nil }
}

// WithNamespace sets the namespace of actor names. Default: "default".
func WithNamespace(name string) StartOption {
	return func(c *startConfig) error { c.Namespace = name; return nil }
}

// WithLogger sets where the node logs. Default: as the log settings say, if any is set, else slog.Default().
func WithLogger(l *slog.Logger) StartOption {
	return func(c *startConfig) error { c.Log = l; return nil }
}

// WithWorkerOutput sets a writer for the standard output and error of worker processes. It gets them line
// by line, each line after its worker's name. If it blocks, it holds up the workers that write. Default:
// none; with Main it is the program's standard error. Cluster.Logs has all of it.
func WithWorkerOutput(w io.Writer) StartOption {
	return func(c *startConfig) error { c.Output = w; return nil }
}

// WithFaults injects the faults of a test's plan into the node and its workers. It is for tests: only the program that
// starts a node can give it a plan. See package chaos, and mobulatest, which reports what the plan did when a test fails.
//
// Experimental: faults may change in any release.
func WithFaults(p *chaos.Plan) StartOption {
	return func(c *startConfig) error { c.Faults = p; return nil }
}

// ConnectNamespace sets the namespace of actor names. Default: "default".
func ConnectNamespace(name string) ConnectOption {
	return func(c *connectConfig) error { c.Namespace = name; return nil }
}

// ConnectToken sets the token with which Connect joins a cluster on other machines; mobula token create --role driver prints one. Default:
// MOBULA_TOKEN.
func ConnectToken(token string) ConnectOption {
	return func(c *connectConfig) error { c.Token = token; return nil }
}

// ConnectLogger sets where the client logs. Default: slog.Default().
func ConnectLogger(l *slog.Logger) ConnectOption {
	return func(c *connectConfig) error { c.Log = l; return nil }
}
