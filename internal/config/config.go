package config

import (
	"strings"
	"time"
)

// Config is the configuration of a node. Fields without a static default are zero until the
// node fills in what the machine has. The doc of each field is in Settings.
type Config struct {
	Name         string
	Dir          string
	GCS          []string // URLs; none: embedded
	Namespace    string
	CPUs         float64 // 0: the machine's; NoCPUs: none
	GPUs         float64
	Memory       Bytes
	MemoryLimit  Bytes
	Resources    map[string]float64
	Labels       map[string]string
	CloseTimeout time.Duration
	WaitForNodes time.Duration

	Cluster    string // its name, of a node that founds one
	Listen     string // HOST[:PORT]; empty: nowhere, or as Join needs
	Advertise  string
	Join       []string
	Role       string // empty: as before, or by Listen and Join
	GossipPort int    // 0: by Listen's, as the next two
	GCSPort    int
	RoutesPort int

	Store   Store
	Workers Workers
	Log     Log
	Metrics Metrics
	Trace   Trace
	Events  Events

	sources map[string]source // by key: where the value comes from
}

// source is where a value comes from, and the rank of that place.
type source struct {
	name string
	rank int // a higher rank wins; 0: the default
}

// Store configures the object store.
type Store struct {
	Size           Bytes
	Dir            string
	Spill          []string
	SpillThreshold float64
	ArgsFraction   float64
	DiskBudget     Bytes
	InlineMax      Bytes
	InlineFraction float64
}

// Workers configures where tasks run.
type Workers struct {
	Processes       bool
	Executable      string
	Heap            Bytes
	StartTimeout    time.Duration
	MemoryThreshold float64
}

// Log configures the node's log.
type Log struct {
	Level  string
	Format string
	File   string
	Size   Bytes
	Files  int
}

// Metrics configures the Prometheus endpoint.
type Metrics struct {
	Address string
}

// Trace configures the part of tracing that OTEL_ variables do not.
type Trace struct {
	Ratio float64
}

// Events configures the record of task events.
type Events struct {
	Ring  int
	Rate  int
	Size  Bytes
	Files int
}

// Source says where a setting's value comes from: "--store-size", "MOBULA_STORE_SIZE",
// "/etc/m.yaml: store.size", "option" or "default".
func (c *Config) Source(key string) string {
	if s, ok := c.sources[key]; ok {
		return s.name
	}
	return "default"
}

// Before tells whether a comes from a place with a higher rank than b.
func (c *Config) Before(a, b string) bool { return c.sources[a].rank > c.sources[b].rank }

// SaidAny tells whether any setting of a section was set, or all have their defaults.
func (c *Config) SaidAny(section string) bool {
	for key := range c.sources {
		if strings.HasPrefix(key, section+".") {
			return true
		}
	}
	return false
}

// Bytes is an amount of memory or disk. Text is a number with a unit: "512MiB", "2GB", "100KiB".
type Bytes uint64
