package node

import (
	"log/slog"
	"math"
	"os"
	"strings"

	"mobula/internal/config"
	"mobula/internal/trust"
	"mobula/telemetry/logs"
)

// ConfigFrom is the node that a configuration describes.
func ConfigFrom(c *config.Config, log *slog.Logger) Config {
	out := Config{
		Name: c.Name, Dir: c.Dir, GCS: c.GCS, Namespace: c.Namespace, CPUs: c.CPUs, GPUs: c.GPUs, Memory: int64(min(c.Memory, math.MaxInt64)),
		MemoryLimit: uint64(c.MemoryLimit), Labels: c.Labels, WaitForNodes: c.WaitForNodes,
		Resources: make(map[string]int64, len(c.Resources)), CloseTimeout: c.CloseTimeout,

		StoreBytes: uint64(c.Store.Size), StoreDir: c.Store.Dir, SpillURLs: c.Store.Spill, SpillThreshold: c.Store.SpillThreshold,
		ArgsFraction: c.Store.ArgsFraction, DiskBudget: uint64(c.Store.DiskBudget), InlineMax: int(c.Store.InlineMax),
		InlineFraction: c.Store.InlineFraction,

		Processes: c.Workers.Processes, Executable: c.Workers.Executable, WorkerHeap: int64(min(c.Workers.Heap, math.MaxInt64)),
		StartTimeout: c.Workers.StartTimeout, MemoryThreshold: c.Workers.MemoryThreshold,

		TraceRatio: c.Trace.Ratio, Logger: log,
	}
	if c.Listen != "" || len(c.Join) > 0 {
		out.Wires = WiresFrom(c)
	}
	if out.TraceRatio == 0 {
		out.TraceRatio = -1
	}
	for name, amount := range c.Resources {
		switch {
		case strings.EqualFold(name, "CPU"):
			unless(c.Before("cpus", "resources"), &out.CPUs, amount)
		case strings.EqualFold(name, "GPU"):
			unless(c.Before("gpus", "resources"), &out.GPUs, amount)
		case name == "memory":
			unless(c.Before("memory", "resources"), &out.Memory, int64(amount))
		default:
			out.Resources[name] = int64(math.Round(amount * 1000))
		}
	}
	return out
}

// WiresFrom is how a node gets into its cluster by a configuration, which may leave all to the node's directory.
func WiresFrom(c *config.Config) *Wires {
	out := &Wires{
		Listen: c.Listen, Advertise: c.Advertise, GossipPort: c.GossipPort, GCSPort: c.GCSPort, RoutesPort: c.RoutesPort,
		Join: c.Join, Role: trust.Role(c.Role),
	}
	if c.Source("cluster") != "default" {
		out.Cluster = c.Cluster
	}
	return out
}

func unless[T any](not bool, p *T, v T) {
	if !not {
		*p = v
	}
}

// TelemetryFrom is what a configuration says of records and metrics.
func TelemetryFrom(c *config.Config) Telemetry {
	t := Telemetry{Ring: c.Events.Ring, Rate: c.Events.Rate, FileBytes: int64(c.Events.Size), Files: c.Events.Files, Metrics: c.Metrics.Address}
	if t.Ring == 0 {
		t.Ring = -1
	}
	return t
}

// LoadConfig is the configuration of a node inside a program: what the program's own options say, by
// the keys of package config, before the environment, the file and the defaults. log is the
// program's logger. Without one the node logs as the environment or the file say, or
// else to slog.Default().
func LoadConfig(options map[string]any, log *slog.Logger) (Config, Telemetry, error) {
	c, err := config.Load(config.Input{Options: options})
	if err != nil {
		return Config{}, Telemetry{}, err
	}
	out := ConfigFrom(c, log)
	out.CallsByOwner = callsByOwner(os.Getenv)
	out.Channels = channels(os.Getenv)
	if log == nil && c.SaidAny("log") {
		if out.Logger, out.closeLog, err = logs.New(logConfig(c.Log)); err != nil {
			return Config{}, Telemetry{}, err
		}
	}
	return out, TelemetryFrom(c), nil
}

func logConfig(l config.Log) logs.Config {
	return logs.Config{Level: l.Level, Format: l.Format, File: l.File, Size: int64(l.Size), Files: l.Files}
}

// NewLogger is the log that a configuration describes; end closes its file.
func NewLogger(c *config.Config) (log *slog.Logger, end func() error, err error) {
	return logs.New(logConfig(c.Log))
}
