package node

import (
	"log/slog"
	"math"
	"strings"

	"mobula/internal/config"
)

// ConfigFrom is the node that a configuration describes.
func ConfigFrom(c *config.Config, log *slog.Logger) Config {
	out := Config{
		Name: c.Name, Dir: c.Dir, Namespace: c.Namespace, CPUs: c.CPUs, GPUs: c.GPUs, Memory: int64(min(c.Memory, math.MaxInt64)),
		Resources: make(map[string]int64, len(c.Resources)), CloseTimeout: c.CloseTimeout,

		StoreBytes: uint64(c.Store.Size), StoreDir: c.Store.Dir, SpillURLs: c.Store.Spill, SpillThreshold: c.Store.SpillThreshold,
		ArgsFraction: c.Store.ArgsFraction, DiskBudget: uint64(c.Store.DiskBudget), InlineMax: int(c.Store.InlineMax),
		InlineFraction: c.Store.InlineFraction,

		Processes: c.Workers.Processes, Executable: c.Workers.Executable, WorkerHeap: int64(min(c.Workers.Heap, math.MaxInt64)),
		StartTimeout: c.Workers.StartTimeout, MemoryThreshold: c.Workers.MemoryThreshold,

		Logger: log,
	}
	for name, amount := range c.Resources {
		switch {
		case strings.EqualFold(name, "CPU"):
			out.CPUs = amount
		case strings.EqualFold(name, "GPU"):
			out.GPUs = amount
		case name == "memory":
			out.Memory = int64(amount)
		default:
			out.Resources[name] = int64(math.Round(amount * 1000))
		}
	}
	return out
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
// the keys of package config, before the environment, the file and the defaults.
func LoadConfig(options map[string]any, log *slog.Logger) (Config, Telemetry, error) {
	c, err := config.Load(config.Input{Options: options})
	if err != nil {
		return Config{}, Telemetry{}, err
	}
	return ConfigFrom(c, log), TelemetryFrom(c), nil
}
