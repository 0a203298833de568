package node

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"mobula/actors"
	gcsshell "mobula/gcs/shell"
	"mobula/internal/errs"
	"mobula/internal/fault"
	"mobula/internal/labels"
	"mobula/internal/memstat"
	"mobula/internal/steady"
	"mobula/internal/trust"
	"mobula/telemetry"
	"mobula/wire"
)

// Config configures a node. The zero value of a field means its default.
type Config struct {
	Name string // default: of a node that is kept what it was called before, or by host name and identity; of another by host name and process
	Dir  string // of socket, logs, control plane and owner logs; default: a fresh one under the user's runtime directory
	Keep bool   // a standalone node: its segment and logs outlive the process, and a restart finds them

	Wires   *Wires   // how it gets into a cluster, and where others reach it; nil: it listens nowhere
	Cluster *Cluster // how it talks with other nodes; nil: it is alone. Of Wires, once the node has a home

	GCS   []string      // URLs of the NATS servers that have the control plane; none: it is embedded
	Beat  time.Duration // between heartbeats to servers elsewhere; default 5 s
	Moved bool          // the directory was copied here, and nobody uses the one that it was copied from

	Bound bool // to the program that started it, nobody restarts it: its segment goes with the process, kept or not

	CPUs   float64 // default: the machine's; negative: none
	GPUs   float64 // default 0
	Memory int64   // bytes that tasks may reserve; default: the machine's less the store
	// MemoryLimit is what the node, its clients and the store may take together, in bytes: the store gives way to the processes'
	// heaps. 0: no such limit.
	MemoryLimit uint64
	Resources   map[string]int64 // custom, in thousandths

	Labels map[string]string // besides those that every node has

	WaitForNodes time.Duration // of what no node can run; default: none

	StoreBytes     uint64        // default: 30 % of the machine's memory, at least 75 MiB, at most 200 GB, as Ray's
	StoreDir       string        // of a kept node's segment; default /dev/shm
	SpillURLs      []string      // default: a directory under Dir
	SpillThreshold float64       // of StoreBytes; default 0.8, as Ray's object_spilling_threshold
	ArgsFraction   float64       // of StoreBytes that running tasks' arguments may take; default 0.7, as Ray's
	StorePatience  time.Duration // how long creates wait while the spill directories are full and nothing is let go; default 30 s
	DiskBudget     uint64        // bytes of the escape files; default: the store's size
	InlineMax      int           // bytes of a value that travels inside messages; default 100 KiB
	InlineFraction float64       // of StoreBytes for inline values and task records; default 0.1

	Processes       bool     // tasks and actors run in worker processes, not in goroutines of this one
	Executable      string   // of a worker; default: this program
	Args            []string // of a worker
	Env             []string // added to a worker's
	WorkerHeap      int64    // bytes of a worker's Go heap for each slot, a soft limit; default 96 MiB
	BlobBytes       uint64   // of what is kept of other nodes' executables and modules; default 2 GiB
	StartTimeout    time.Duration
	MemoryMinFree   uint64  // bytes; of a large machine, work is ended only below that much free; default 3 GiB, ^0: off
	MemoryThreshold float64 // of the machine or cgroup, above which the memory monitor ends work; default 0.95, as Ray's

	TraceRatio   float64       // share of tasks without a traced caller that are traced; default 0.01, negative: none
	WarnAfter    time.Duration // a get that waits longer logs why; default 60 s
	Namespace    string
	NoGCS        bool          // without control plane: no named actors (tests of other parts)
	CloseTimeout time.Duration // default 10 s

	CallsByOwner bool // calls of actors in this process go by their job's owner, as those of other processes do (decision 0038); LoadConfig reads it from the environment
	Channels     bool // those of actors in worker processes go straight too, by channels (decision 0038); ConfigFrom reads it from the environment

	Logger       *slog.Logger
	WorkerOutput io.Writer    // takes what worker processes write, whole lines from several goroutines, beside their logs; nil: the logs alone
	Clock        steady.Clock // of a test in which the clocks of nodes are apart; the zero value: the node begins one
	Faults       *actors.Faults
	Chaos        fault.Decider // a test's plan; nil: none. Only the program that starts the node can give it one

	closeLog func() error // of a Logger that is the node's own; nil: it is not
}

// withDefaults fills in what was not said.
func (c Config) withDefaults() (Config, error) {
	if c.Wires == nil || c.Wires.Role != trust.Driver { // such a node runs no work unless told
		def(&c.CPUs, float64(runtime.NumCPU()))
	}
	c.CPUs = max(c.CPUs, 0)
	total := machineMemory()
	def(&c.StoreBytes, min(max(total*3/10, 75<<20), 200_000_000_000))
	def(&c.Memory, int64(total-min(total/2, c.StoreBytes)))
	def(&c.StoreDir, "/dev/shm")
	def(&c.SpillThreshold, 0.8)
	def(&c.ArgsFraction, 0.7)
	def(&c.StorePatience, 30*time.Second)
	def(&c.DiskBudget, c.StoreBytes)
	def(&c.InlineMax, wire.InlineMax)
	def(&c.InlineFraction, 0.1)
	def(&c.WorkerHeap, 96<<20)
	def(&c.StartTimeout, 30*time.Second)
	def(&c.MemoryThreshold, 0.95)
	def(&c.TraceRatio, telemetry.DefaultRatio)
	def(&c.Namespace, "default")
	if c.Wires != nil && c.Wires.Wall == nil {
		c.Wires.Wall = time.Now
	}
	def(&c.CloseTimeout, 10*time.Second)
	def(&c.Beat, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Executable == "" {
		c.Executable = ownExecutable
	}
	return c, c.validate()
}

// workerArgs are the arguments of a worker that runs the node's own program.
func (c Config) workerArgs() []string {
	if c.Args == nil {
		return os.Args[1:]
	}
	return c.Args
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// validate gives every mistake at once.
func (c Config) validate() error {
	var all []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			all = append(all, errs.New(errs.CodeInvalid, format, args...))
		}
	}
	fraction := func(name string, v float64) {
		bad(v <= 0 || v > 1, "%s is %v; want a fraction above 0 and up to 1", name, v)
	}
	bad(c.NoGCS && len(c.GCS) > 0, "the node is to run without a control plane, and with the one at %v", gcsshell.Redacted(c.GCS))
	bad(c.GPUs < 0, "GPUs is %v; want 0 or more", c.GPUs)
	bad(c.StoreBytes < 1<<20, "the store's size is %d bytes; want 1 MiB or more", c.StoreBytes)
	fraction("the spill threshold", c.SpillThreshold)
	fraction("the fraction of the store for arguments", c.ArgsFraction)
	fraction("the fraction of the store for inline values", c.InlineFraction)
	fraction("the memory threshold", c.MemoryThreshold)
	bad(c.TraceRatio > 1, "the share of traced tasks is %v; want 0 to 1", c.TraceRatio)
	bad(c.InlineMax < 0 || c.InlineMax > wire.MaxFrame/4, "the inline limit is %d bytes; want 0 to %d", c.InlineMax, wire.MaxFrame/4)
	if err := labels.Check(c.Labels); err != nil {
		bad(true, "%v", err)
	}
	bad(c.WaitForNodes < 0, "the wait for nodes is %v; want 0 or more", c.WaitForNodes)
	for name, amount := range c.Resources {
		bad(amount < 0, "resource %q is %v; want 0 or more", name, float64(amount)/1000)
	}
	return errors.Join(all...)
}

// machineMemory is the machine's memory in bytes, or the cgroup's limit where that is less.
func machineMemory() uint64 {
	total, err := (&memstat.Sampler{FS: os.DirFS("/")}).Total()
	if err != nil {
		return 4 << 30 // where /proc cannot be read: assume little
	}
	return total
}
