package metrics

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"mobula/internal/state"
)

// ScrapeTimeout bounds how long a scrape waits for the node.
const ScrapeTimeout = 2 * time.Second

// Snapshot is the node at one time. Counters never fall while the node lives.
type Snapshot struct {
	state.Status
	Changes     map[string]uint64 // tasks that ever entered a state
	WorkersBy   map[string]int    // by slot
	InlineBytes uint64            // values in owners' memory
	AliveBy     map[string]int    // actors, by class as Actors.Class names it
	PendingBy   map[string]int    // calls that have not ended, by class
}

// Set is a node's metrics.
type Set struct {
	*prometheus.Registry
	Mailboxes *Mailboxes
	Actors    *Actors
}

// New makes the metrics of a node; ask gives the state at a scrape and must respect ctx.
func New(ask func(ctx context.Context) Snapshot) *Set {
	s := &Set{Registry: prometheus.NewPedanticRegistry(), Mailboxes: newMailboxes(), Actors: newActors()}
	s.MustRegister(&node{ask}, s.Mailboxes.depth, s.Mailboxes.age, s.Actors.restarts, s.Actors.seconds, s.Actors.ended,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

const (
	maxResources = 32 // further ones are summed as "other"
	maxKinds     = 64
	other        = "other"
)

// family is one metric: its description and how it is read off a snapshot.
type family struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	label bool
	read  func(s *Snapshot) map[string]float64 // values by label; "" if it has no label
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

func with(name, label, help string, kind prometheus.ValueType, read func(*Snapshot) map[string]float64) family {
	var labels []string
	if label != "" {
		labels = []string{label}
	}
	return family{prometheus.NewDesc("mobula_"+name, help, labels, nil), kind, label != "", read}
}

func single(name, help string, kind prometheus.ValueType, read func(*Snapshot) float64) family {
	return with(name, "", help, kind, func(s *Snapshot) map[string]float64 { return map[string]float64{"": read(s)} })
}

var families = []family{
	with("node_info", "node", "1, with the node's name.", gauge, func(s *Snapshot) map[string]float64 { return map[string]float64{s.Node: 1} }),
	single("uptime_seconds", "Time since the node started.", gauge, func(s *Snapshot) float64 { return float64(s.Now-s.Started) / 1e9 }),
	with("tasks", "state", "Tasks that are remembered, by state.", gauge, func(s *Snapshot) map[string]float64 { return floats(s.Tasks) }),
	with("task_changes_total", "state", "Tasks that came into a state.", counter, func(s *Snapshot) map[string]float64 { return floats(s.Changes) }),
	with("actors", "state", "Actors, by state.", gauge, func(s *Snapshot) map[string]float64 { return floats(s.Actors) }),
	with("actors_alive", "class", "Actors that are alive, by class.", gauge, func(s *Snapshot) map[string]float64 { return floats(s.AliveBy) }),
	with("actor_pending_calls", "class", "Calls of actors that have not ended, by class.", gauge, func(s *Snapshot) map[string]float64 { return floats(s.PendingBy) }),
	single("graphs", "Task graphs that run.", gauge, func(s *Snapshot) float64 { return float64(len(s.Graphs)) }),
	with("graph_tasks", "state", "Tasks of the graphs that run: waiting for what they take, queued (root tasks withheld), processing.", gauge, graphTasks),
	single("jobs", "Jobs.", gauge, func(s *Snapshot) float64 { return float64(len(s.Jobs)) }),
	single("clients", "Connected drivers, workers and tools.", gauge, func(s *Snapshot) float64 { return float64(s.Clients) }),
	with("workers", "slot", "Workers, by what they run.", gauge, func(s *Snapshot) map[string]float64 { return floats(s.WorkersBy) }),
	single("leases", "Leases held by owners.", gauge, func(s *Snapshot) float64 { return float64(s.Leases) }),
	with("resource_total", "resource", "What the node has, in whole units; memory in bytes.", gauge, func(s *Snapshot) map[string]float64 {
		return resources(s, func(r state.Resource) float64 { return r.Total })
	}),
	with("resource_free", "resource", "What of it is free.", gauge, func(s *Snapshot) map[string]float64 {
		return resources(s, func(r state.Resource) float64 { return r.Free })
	}),
	single("inline_bytes", "Values held in messages and owners' memory.", gauge, func(s *Snapshot) float64 { return float64(s.InlineBytes) }),
	with("store_bytes", "what", "Object store, in bytes: limit, held of it, backed by memory, sealed, writing, pinned, args, spilled, fallback.", gauge, storeBytes),
	with("store_objects", "where", "Objects in the store and in spill storage.", gauge, storeObjects),
	with("store_waiting", "what", "Creates, argument sets and restores that wait.", gauge, func(s *Snapshot) map[string]float64 {
		return map[string]float64{"create": float64(s.Store.Waiting), "args": float64(s.Store.WaitingArgs), "restore": float64(s.Store.Restoring)}
	}),
	single("store_spilled_bytes_total", "Bytes written to spill storage.", counter, func(s *Snapshot) float64 { return float64(s.Store.SpilledEver) }),
	single("store_restored_bytes_total", "Bytes read back from spill storage.", counter, func(s *Snapshot) float64 { return float64(s.Store.RestoredEver) }),
	single("store_reclaimed_bytes_total", "Bytes in spill storage given back by writing files anew of which little was used.", counter, func(s *Snapshot) float64 { return float64(s.Store.Reclaimed) }),
	single("store_spills_total", "Writes to spill storage, each of many objects.", counter, func(s *Snapshot) float64 { return float64(s.Store.Spills) }),
	single("store_restores_total", "Objects read back from spill storage.", counter, func(s *Snapshot) float64 { return float64(s.Store.Restores) }),
	single("store_spill_seconds_total", "Time of writes to spill storage, summed over those at once.", counter, func(s *Snapshot) float64 { return float64(s.Store.SpillTime) / 1e9 }),
	single("store_restore_seconds_total", "Time of reads from spill storage, summed over those at once.", counter, func(s *Snapshot) float64 { return float64(s.Store.RestoreTime) / 1e9 }),
	single("store_spill_errors_total", "Writes to spill storage that failed.", counter, func(s *Snapshot) float64 { return float64(s.Store.SpillErrors) }),
	single("store_lost_total", "Objects of which no intact copy was left.", counter, func(s *Snapshot) float64 { return float64(s.Store.Lost) }),
	with("component_restarts_total", "kind", "Restarts of components after a panic.", counter, func(s *Snapshot) map[string]float64 { return bounded(floats(s.Restarts), maxKinds) }),
	single("task_events_recorded_total", "Task events recorded.", counter, func(s *Snapshot) float64 { return float64(s.Events.Recorded) }),
	single("task_events_dropped_total", "Task events left out because of their rate.", counter, func(s *Snapshot) float64 { return float64(s.Events.Dropped) }),
	single("task_events_unfiled_total", "Task events not written to the files.", counter, func(s *Snapshot) float64 { return float64(s.Events.Unfiled) }),
	single("spans_exported_total", "Spans that the collector has taken.", counter, func(s *Snapshot) float64 { return float64(s.Export.Spans) }),
	single("spans_dropped_total", "Spans given up for want of room, or since the collector did not take them in time.", counter, func(s *Snapshot) float64 { return float64(s.Export.SpansDropped) }),
	single("metric_exports_total", "Exports of all metrics that the collector has taken.", counter, func(s *Snapshot) float64 { return float64(s.Export.Metrics) }),
	single("metric_exports_dropped_total", "Exports of all metrics that the collector did not take in time.", counter, func(s *Snapshot) float64 { return float64(s.Export.MetricsDropped) }),
	single("log_records_exported_total", "Log records that the collector has taken.", counter, func(s *Snapshot) float64 { return float64(s.Export.Logs) }),
	single("log_records_dropped_total", "Log records not exported for want of room, or since the collector did not take them in time.", counter, func(s *Snapshot) float64 { return float64(s.Export.LogsDropped) }),
	single("scrape_silent_components", "Components that did not answer this scrape in time.", gauge, func(s *Snapshot) float64 { return float64(len(s.Silent)) }),
}

func storeBytes(s *Snapshot) map[string]float64 {
	st := &s.Store
	return floats(map[string]uint64{
		"limit": st.Limit, "held": st.Held, "backed": st.Backed, "sealed": st.Sealed, "writing": st.Writing, "pinned": st.Pinned,
		"args": st.Args, "spilled": st.Spilled, "spill_garbage": st.SpillGarbage, "fallback": st.Fallback,
	})
}

func storeObjects(s *Snapshot) map[string]float64 {
	return floats(map[string]int{"all": s.Store.Objects, "memory": s.Store.InMemory, "spilled": s.Store.OnlySpilled})
}

func floats[N int | uint64](m map[string]N) map[string]float64 {
	out := make(map[string]float64, len(m))
	for k, v := range m {
		out[k] = float64(v)
	}
	return out
}

func resources(s *Snapshot, of func(state.Resource) float64) map[string]float64 {
	out := make(map[string]float64, len(s.Resources))
	for name, r := range s.Resources {
		out[name] = of(r)
	}
	return bounded(out, maxResources)
}

// bounded sums the values beyond the first most names.
func bounded(m map[string]float64, most int) map[string]float64 {
	if len(m) <= most {
		return m
	}
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i >= most && name != other {
			m[other] += m[name]
			delete(m, name)
		}
	}
	return m
}

// node is the collector of a snapshot.
type node struct {
	ask func(ctx context.Context) Snapshot
}

func (n *node) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families {
		ch <- f.desc
	}
}

func (n *node) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), ScrapeTimeout)
	defer cancel()
	s := n.ask(ctx)
	for _, f := range families {
		for value, x := range f.read(&s) {
			if f.label {
				ch <- prometheus.MustNewConstMetric(f.desc, f.kind, x, value)
			} else {
				ch <- prometheus.MustNewConstMetric(f.desc, f.kind, x)
			}
		}
	}
}

func graphTasks(s *Snapshot) map[string]float64 {
	m := map[string]float64{"waiting": 0, "queued": 0, "processing": 0}
	for _, g := range s.Graphs {
		m["waiting"] += float64(g.Waiting)
		m["queued"] += float64(g.Queued)
		m["processing"] += float64(g.Processing)
	}
	return m
}
