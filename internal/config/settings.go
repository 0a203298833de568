package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Setting describes one setting, for help and documentation.
type Setting struct {
	Key     string `json:"key"`     // in the file: "store.size"
	Env     string `json:"env"`     // "MOBULA_STORE_SIZE"
	Flag    string `json:"flag"`    // "store-size"
	Kind    string `json:"kind"`    // what a value looks like: "size", "duration", "fraction" ...
	Default string `json:"default"` // as a user would write it, or in words if it depends on the machine
	Doc     string `json:"doc"`
}

// setting is a Setting bound to the field that it sets.
type setting struct {
	Setting
	set  func(v any) error // v is a YAML value, or text
	show func() string
}

// settings is the list of all settings. Each entry sets its static default when the list is made.
func (c *Config) settings() []setting {
	var t table
	t.text(&c.Name, "name", "", "the one that the node in this directory had before, or one made of the host name", "Name of the node, as lists and logs show it.")
	t.text(&c.Dir, "dir", "", "mobula-UID/default under the directory for temporary files; of an embedded node a fresh one", "Directory of the node's socket, logs, control plane and owner logs. One node a directory.")
	t.servers(&c.GCS, "gcs", "Control plane, which has the names of actors and the nodes of a cluster: \"embedded\" in the node, or the URL of a NATS server with JetStream, or those of a set of servers, with commas.")
	t.text(&c.Namespace, "namespace", "default", "", "Namespace of actor names for programs that name none.")
	t.cpus(&c.CPUs, "cpus", "the machine's", "CPUs that tasks may ask for; that many one-CPU tasks run at once. A node of a cluster may have 0, and is given no work that asks for a CPU.")
	t.number(&c.GPUs, "gpus", "0", "GPUs that tasks may ask for.", nonNegative)
	t.size(&c.Memory, "memory", 0, "the machine's without the store", "Memory that tasks may ask for as the resource \"memory\".", nil)
	t.size(&c.MemoryLimit, "memory-limit", 0, "none", "Memory that the node, its programs and workers, and the object store may take together. When the processes' heaps grow the store gives way: what it has no room for lies on disk. Nothing is ended for it.", nil)
	t.amounts(&c.Resources, "resources", "Further resources by name, for tasks to ask for: name=amount,... or a map in the file.")
	t.labels(&c.Labels, "labels", "Labels of the node, by which tasks may choose it: key=value,... or a map in the file. Each node has mobula.io/node-id, mobula.io/os and mobula.io/arch besides.")
	t.duration(&c.CloseTimeout, "close-timeout", 10*time.Second, "How long a graceful stop may take before it is forced.")

	t.patience(&c.WaitForNodes, "wait-for-nodes", "How long the tasks and actors of this node's programs that no node of the cluster can ever run wait for a node that can, before they fail.")
	t.text(&c.Cluster, "cluster", "mobula", "", "Name of the cluster that the node founds. With join, the name that the cluster must have.")
	t.text(&c.Listen, "listen", "", "nowhere; of a node that joins, the address from which it reaches the cluster", "Address for other nodes, HOST or HOST:PORT (port 7710). A node that listens and joins nobody founds a cluster. All that comes there is authenticated and encrypted.")
	t.text(&c.Advertise, "advertise", "", "the host of listen", "Host by which other nodes reach this one, where it differs.")
	t.list(&c.Join, "join", "the cluster that dir knows", "Addresses of control-plane servers of a cluster to join, with commas; MOBULA_TOKEN, or --token, has the token.")
	t.oneOf(&c.Role, "role", "what dir has; else data for a node that joins, control-plane for one that founds a cluster", "What the node is in its cluster: data runs work, control-plane carries the tables too, driver only submits work.", "data", "control-plane", "driver")
	t.port(&c.GossipPort, "gossip-port", 1, "Port of the membership's gossip, TCP and UDP.")
	t.port(&c.GCSPort, "gcs-port", 2, "Port of the control plane's clients, on its servers.")
	t.port(&c.RoutesPort, "routes-port", 3, "Port of the control plane's servers among themselves.")

	t.size(&c.Store.Size, "store.size", 0, "30 % of the machine's memory, as Ray's", "Size of the object store: a hard limit on the shared memory of the node. What the node left before keeps the size that it has where it would not all fit, or a program has it mapped.", atLeast(1<<20))
	t.text(&c.Store.Dir, "store.dir", "/dev/shm", "", "Directory of the shared memory segment of a node that may be started again; one that ends with its program has no file there.")
	t.list(&c.Store.Spill, "store.spill", "a directory under dir", "Where objects go that do not fit: directories or URLs (file://, s3://), used in turn.")
	t.fraction(&c.Store.SpillThreshold, "store.spill-threshold", 0.8, "Share of the store above which cold objects are spilled; the default is Ray's.")
	t.fraction(&c.Store.ArgsFraction, "store.args-fraction", 0.7, "Share of the store that running tasks' arguments may take; the default is Ray's.")
	t.size(&c.Store.DiskBudget, "store.disk-budget", 0, "the store's size", "Bytes of files that stand in for shared memory when nothing can be unpinned.", nil)
	t.size(&c.Store.InlineMax, "store.inline-max", 100<<10, "", "Largest value that travels inside messages instead of through the store.", atMost(16<<20))
	t.fraction(&c.Store.InlineFraction, "store.inline-fraction", 0.1, "Share of the store's size that inline values and task records may take besides it.")

	t.flag(&c.Workers.Processes, "workers.processes", "An embedded node runs tasks in worker processes instead of goroutines. A node that runs by itself always does.")
	t.text(&c.Workers.Executable, "workers.executable", "", "the driver's own", "Program that worker processes run.")
	t.size(&c.Workers.Heap, "workers.heap", 96<<20, "", "Soft limit on a worker's Go heap, for each of its slots.", atLeast(1<<20))
	t.duration(&c.Workers.StartTimeout, "workers.start-timeout", 30*time.Second, "How long a worker process may take to register.")
	t.fraction(&c.Workers.MemoryThreshold, "workers.memory-threshold", 0.95, "Share of the machine's or cgroup's memory above which the memory monitor ends work; the default is Ray's.")

	t.choice(&c.Log.Level, "log.level", "info", "Least level that is logged.", "debug", "info", "warn", "error")
	t.choice(&c.Log.Format, "log.format", "text", "Form of log lines.", "text", "json")
	t.text(&c.Log.File, "log.file", "", "standard error", "File to log to, rotated.")
	t.size(&c.Log.Size, "log.size", 100_000_000, "", "Size at which a log file is rotated; the default is Ray's.", atLeast(4<<10))
	t.count(&c.Log.Files, "log.files", 5, "Rotated log files that are kept; the default is Ray's.", 1, 1000)

	t.loopback(&c.Metrics.Address, "metrics.address", "Loopback address to serve Prometheus metrics on, as 127.0.0.1:9464; port 0 takes a free one. Who scrapes shows the token that the file metrics.token under dir has.")

	t.share(&c.Trace.Ratio, "trace.ratio", 0.01, "Share of the tasks without a traced caller that are traced; OTEL_TRACES_SAMPLER goes before it.")

	t.count(&c.Events.Ring, "events.ring", 100_000, "Task events that the node remembers for lists and the timeline; the oldest make room. 0: none. The default is Ray's.", 0, 10_000_000)
	t.count(&c.Events.Rate, "events.rate", 20_000, "Task events a second that are recorded in full; above it whole tasks are left out and counted.", 1, 10_000_000)
	t.size(&c.Events.Size, "events.size", 32<<20, "", "Size at which a file of task events is rotated. 0: no files.", nil)
	t.count(&c.Events.Files, "events.files", 2, "Rotated files of task events that are kept.", 1, 1000)
	return t
}

// Settings lists every setting, for help and documentation.
func Settings() []Setting {
	all := new(Config).settings()
	out := make([]Setting, len(all))
	for i, s := range all {
		out[i] = s.Setting
	}
	return out
}

// Value is a setting with its value and where that comes from.
type Value struct {
	Setting
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Describe lists every setting with the value it has in c.
func (c *Config) Describe() []Value {
	cp := *c
	ref := cp // settings fills in the defaults of cp; the values are c's
	all := cp.settings()
	cp = ref
	out := make([]Value, len(all))
	for i, s := range all {
		out[i] = Value{s.Setting, s.show(), c.Source(s.Key)}
	}
	return out
}

// Default is the configuration with all defaults.
func Default() *Config {
	c := new(Config)
	c.settings()
	return c
}

// RuntimeEnv are the MOBULA_ variables that are not settings but the runtime's own.
var RuntimeEnv = []string{
	"MOBULA_ADDRESS",           // of the node that programs join
	"MOBULA_BINARY",            // the executable that Python programs start a node with
	"MOBULA_CHAOS_SEED",        // of the faults that a test makes
	"MOBULA_CONFIG",            // path of the configuration file
	"MOBULA_PYTHON",            // interpreter of the Python workers of Go programs
	"MOBULA_STRAIGHT_CALLS",    // 0: calls of actors go by the owner; it goes when none does
	"MOBULA_STRAIGHT_CHANNELS", // 1: calls of actors go straight between processes of a node too; it goes when they do by default
	"MOBULA_TOKEN",             // with which a node joins its cluster
}

// Prefixes of variables that Load leaves alone.
var runtimePrefixes = []string{
	"MOBULA_WORKER_", // with which a node tells its worker processes what they are
	"MOBULA_TEST_",   // of tests
	"MOBULA_E2E_",    // of the end-to-end tests
	"MOBULA_STRESS",  // makes tests longer
}

func isRuntimeEnv(name string) bool {
	return slices.Contains(RuntimeEnv, name) ||
		slices.ContainsFunc(runtimePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func named(key, kind, def, doc string) Setting {
	return Setting{
		Key: key, Env: "MOBULA_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key)),
		Flag: strings.ReplaceAll(key, ".", "-"), Kind: kind, Default: def, Doc: doc,
	}
}

func either(words, value string) string {
	if words != "" {
		return words
	}
	return value
}

// NoCPUs is the value of CPUs where none are said: 0 is that of all CPUs of the machine.
const NoCPUs = -1

// someCPU refuses no CPUs, for a node that would be of no use.
func someCPU(v float64) error {
	if v <= 0 {
		return fmt.Errorf("want more than 0; leave it out for all CPUs of the machine")
	}
	return nil
}

func nonNegative(v float64) error {
	if v < 0 {
		return fmt.Errorf("want 0 or more")
	}
	return nil
}

func atLeast(n Bytes) func(Bytes) error {
	return func(v Bytes) error {
		if v < n {
			return fmt.Errorf("want %v or more", n)
		}
		return nil
	}
}

func atMost(n Bytes) func(Bytes) error {
	return func(v Bytes) error {
		if v > n {
			return fmt.Errorf("want %v or less", n)
		}
		return nil
	}
}
