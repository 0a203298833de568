package sim

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"mobula/graph"
)

// Workload is a graph with the sizes of its results and the durations of its tasks.
type Workload struct {
	Name  string
	Graph *graph.Graph
	Bytes []int64
	Times []time.Duration
}

// recording is a workload as testdata/record.py writes it.
type recording struct {
	Name     string    `json:"name"`
	Groups   []string  `json:"groups"`
	Keys     []string  `json:"keys"`
	Group    []int32   `json:"group"` // of each task
	Deps     [][]int32 `json:"deps"`
	Producer []int32   `json:"producer"` // tasks marked as producers
	Order    []int32   `json:"order"`
	Wanted   []int32   `json:"wanted"`
	Bytes    []int64   `json:"bytes"`
	Micros   []int64   `json:"micros"`
}

// Read reads a recorded workload, gzipped JSON.
func Read(from io.Reader) (*Workload, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("sim: recorded workload: %w", err)
	}
	var rec recording
	if err := json.NewDecoder(z).Decode(&rec); err != nil {
		return nil, fmt.Errorf("sim: recorded workload: %w", err)
	}
	n := len(rec.Keys)
	if len(rec.Group) != n || len(rec.Deps) != n || len(rec.Order) != n || len(rec.Bytes) != n || len(rec.Micros) != n {
		return nil, fmt.Errorf("sim: recorded workload %q: its columns differ in length", rec.Name)
	}
	tasks, times := make([]graph.Task, n), make([]time.Duration, n)
	for i, key := range rec.Keys {
		if g := rec.Group[i]; g < 0 || int(g) >= len(rec.Groups) {
			return nil, fmt.Errorf("sim: recorded workload %q: %q has no group", rec.Name, key)
		}
		tasks[i] = graph.Task{Key: key, Deps: rec.Deps[i], Group: rec.Groups[rec.Group[i]]}
		times[i] = time.Duration(rec.Micros[i]) * time.Microsecond
	}
	for _, p := range rec.Producer {
		if p < 0 || int(p) >= n {
			return nil, fmt.Errorf("sim: recorded workload %q: task %d is marked and not there", rec.Name, p)
		}
		tasks[p].Producer = true
	}
	g, err := graph.New(tasks, rec.Order, rec.Wanted)
	if err != nil {
		return nil, err
	}
	return &Workload{Name: rec.Name, Graph: g, Bytes: rec.Bytes, Times: times}, nil
}

// Config gives the configuration to run a workload by a policy.
func (w *Workload) Config(p graph.Policy, workers, threads int) Config {
	core := graph.DefaultConfig()
	core.Policy = p
	core.Bandwidth = DefaultBandwidth
	return Config{
		Graph: w.Graph, Core: core, Workers: workers, Threads: threads,
		Size:     func(t int32) int64 { return w.Bytes[t] },
		Duration: func(t int32) time.Duration { return w.Times[t] },
		Jitter:   0.1, Seed: 1,
		Bandwidth: DefaultBandwidth, NetLatency: DefaultNetLatency, Latency: DefaultLatency,
	}
}
