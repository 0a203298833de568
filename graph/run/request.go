package run

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"mobula/graph"
	"mobula/graph/internal/amount"
	dask "mobula/graph/order"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// Func is the function of a graph's task. Its arguments are an encoded Request, as bytes, and a value that contains
// references: the blobs, then the outer objects. It is one of the functions that the node runs itself (wire.SystemPrefix).
const Func = "mobula:graph"

// Request is a graph as a driver ships it, in CBOR. Lists of numbers are little-endian int32.
type Request struct {
	Version  int      `cbor:"v"`
	Func     string   `cbor:"func"` // the function that each task calls, with its payload, its dependencies' results and its outer objects
	Keys     []string `cbor:"keys"`
	Deps     []byte   `cbor:"deps"`    // tasks' numbers
	DepCount []byte   `cbor:"ndeps"`   // a task
	DepPart  []byte   `cbor:"parts"`   // beside Deps: which return of the dependency; empty: the first
	Outer    []byte   `cbor:"outer"`   // indices of outer objects
	OutCount []byte   `cbor:"nouter"`  // a task; empty: none
	Blobs    []byte   `cbor:"blobs"`   // how many tasks' payloads each blob has
	Length   []byte   `cbor:"length"`  // of each task's payload, in the order of the tasks; -1: its first outer object is the payload
	Meta     []byte   `cbor:"meta"`    // the payloads' layout
	Groups   []string `cbor:"groups"`  // names; empty: from the keys
	GroupOf  []byte   `cbor:"group"`   // a task
	Producer []byte   `cbor:"produce"` // a byte per task: it makes data from outside the graph; empty: none does
	Notes    []Note   `cbor:"notes"`
	NoteOf   []byte   `cbor:"note"`  // a task, -1: none; empty: none has one
	Order    []byte   `cbor:"order"` // a task; empty: by package order
	Wanted   []byte   `cbor:"wanted"`

	Saturation float64 `cbor:"saturation"` // worker-saturation
	Failures   int32   `cbor:"failures"`   // a task fails when that many workers have died while they ran it
	Events     bool    `cbor:"events"`     // report tasks as they are submitted and end (StreamEvent)
}

// Note has the settings of some tasks: annotations of the graph, and properties of their function.
type Note struct {
	Resources map[string]float64 `cbor:"resources"` // of the node, in units; "memory" in bytes
	CPU       *float64           `cbor:"cpu"`       // nil: 1
	Priority  int32              `cbor:"priority"`
	Retries   int32              `cbor:"retries"`    // of errors of its own, counted apart from workers' deaths
	Errors    bool               `cbor:"exceptions"` // if Retries is 0: errors of its own count like workers' deaths; without Failures, 3 of them, counted apart
	Only      string             `cbor:"only"`       // which errors of its own are retried, as wire.TaskOptions.RetryOnly has it; empty: any
	Failures  int32              `cbor:"failures"`   // 0: the request's; -1: no number of deaths fails it
	Isolated  bool               `cbor:"isolated"`   // in a process of its own
	Spread    bool               `cbor:"spread"`
	Timeout   int64              `cbor:"timeout"` // ns, from its submission; 0: none
	Returns   int32              `cbor:"returns"` // 0: 1

	// Which nodes may run them, as wire.TaskOptions has it.
	Labels   []wire.LabelMatch `cbor:"labels"`
	Prefer   []wire.LabelMatch `cbor:"prefer"`
	Affinity wire.Affinity     `cbor:"affinity"`
	Node     ids.Home          `cbor:"node"`
}

// StreamEvent is an item of the stream that a graph with Events returns, in CBOR; without Events, the only result is a
// Summary. It has the numbers of the tasks that were submitted, succeeded and failed since the last event. In graphs of
// very many tasks it collects a few of them, but a failure is sent at once.
type StreamEvent struct {
	Started []int32  `cbor:"s"`
	Done    []int32  `cbor:"d"`
	Failed  []int32  `cbor:"f"`
	Summary *Summary `cbor:"sum"` // in the last one
}

// Summary is how a graph ended.
type Summary struct {
	Tasks   int    `cbor:"tasks"`   // of the graph
	Ran     uint64 `cbor:"ran"`     // tasks that succeeded
	Failed  int    `cbor:"failed"`  // tasks that failed by an error of their own
	Peak    int64  `cbor:"peak"`    // highest bytes of results
	Elapsed int64  `cbor:"elapsed"` // ns
}

// Version of the request's layout.
const Version = 1

// Work is a checked request.
type Work struct {
	*Request
	graph  *graph.Graph
	deps   [][]int32 // with repetitions, as payloads count them
	parts  [][]int32 // beside deps; nil: all the first
	outer  [][]int32
	length []int32
	blob   []int32 // of each task
	offset []int64 // of each task's payload in its blob
	noteOf []int32
	nouter int // outer objects there must be
	nblobs int
	wanted []int32
}

func invalid(format string, args ...any) error {
	return errs.New(errs.CodeInvalid, "graph: "+format, args...)
}

// NewWork checks that a request is consistent.
func NewWork(r *Request) (*Work, error) {
	var err error
	if r.Version != Version {
		return nil, invalid("the request's layout is %d, this node reads %d: use a driver and a node of one release", r.Version, Version)
	}
	if math.IsNaN(r.Saturation) || r.Saturation < 0 {
		return nil, invalid("worker-saturation is %v: give 0 or more, or inf", r.Saturation)
	}
	w := &Work{Request: r}
	n := len(r.Keys)
	read := func(what string, b []byte, want int) []int32 {
		v := numbers(b)
		if err == nil && (len(b)%4 != 0 || want >= 0 && len(v) != want) {
			err = invalid("%s has %d bytes, want 4 for each of %d", what, len(b), want)
		}
		return v
	}
	flat := read("deps", r.Deps, -1)
	parts := []int32(nil)
	if len(r.DepPart) > 0 {
		parts = read("parts", r.DepPart, len(flat))
	}
	outer := read("outer", r.Outer, -1)
	counts := read("ndeps", r.DepCount, n)
	w.length = read("length", r.Length, n)
	w.wanted = read("wanted", r.Wanted, -1)
	blobs := read("blobs", r.Blobs, -1)
	var outCounts, groupOf, order []int32
	if len(r.OutCount) > 0 {
		outCounts = read("nouter", r.OutCount, n)
	}
	if len(r.Groups) > 0 {
		groupOf = read("group", r.GroupOf, n)
	}
	if len(r.NoteOf) > 0 {
		w.noteOf = read("note", r.NoteOf, n)
	}
	if len(r.Order) > 0 {
		order = read("order", r.Order, n)
	}
	if err == nil && len(r.Producer) > 0 && len(r.Producer) != n {
		err = invalid("produce has %d bytes, want one for each of %d tasks", len(r.Producer), n)
	}
	if err != nil {
		return nil, err
	}
	if w.deps, err = split("deps", flat, counts); err != nil {
		return nil, err
	}
	if parts != nil {
		if w.parts, err = split("parts", parts, counts); err != nil {
			return nil, err
		}
	}
	if outCounts != nil {
		if w.outer, err = split("outer", outer, outCounts); err != nil {
			return nil, err
		}
	}
	for _, o := range outer {
		if o < 0 {
			return nil, invalid("outer object %d: numbers begin at 0", o)
		}
		w.nouter = max(w.nouter, int(o)+1)
	}
	if err := w.place(blobs); err != nil {
		return nil, err
	}
	return w, w.build(groupOf, order)
}

// numbers reads little-endian int32s.
func numbers(b []byte) []int32 {
	out := make([]int32, len(b)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// split cuts a flat list into lists of single tasks.
func split(what string, flat, counts []int32) ([][]int32, error) {
	out := make([][]int32, len(counts))
	at := 0
	for i, n := range counts {
		if n < 0 || int(n) > len(flat)-at {
			return nil, invalid("%s: task %d has %d, there are %d left", what, i, n, len(flat)-at)
		}
		out[i] = flat[at : at+int(n) : at+int(n)]
		at += int(n)
	}
	if at != len(flat) {
		return nil, invalid("%s: %d are nobody's", what, len(flat)-at)
	}
	return out, nil
}

// place finds the blob and offset of each payload.
func (w *Work) place(blobs []int32) error {
	n := len(w.Keys)
	w.nblobs = len(blobs)
	w.blob, w.offset = make([]int32, n), make([]int64, n)
	t := 0
	for b, count := range blobs {
		at := int64(0)
		if count < 0 || int(count) > n-t {
			return invalid("blob %d has %d payloads, there are %d left", b, count, n-t)
		}
		for range count {
			w.blob[t], w.offset[t] = int32(b), at
			if w.length[t] > 0 {
				at += int64(w.length[t])
			}
			t++
		}
	}
	if t != n {
		return invalid("the payloads of %d tasks are in no blob", n-t)
	}
	for t, l := range w.length {
		if l < -1 || l == -1 && (w.outer == nil || len(w.outer[t]) == 0) {
			return invalid("%q: its payload has a length of %d and there is no outer object", w.Keys[t], l)
		}
	}
	return nil
}

// Note is the note of a task, or nil.
func (w *Work) Note(t int32) *Note {
	if w.noteOf == nil || w.noteOf[t] < 0 {
		return nil
	}
	return &w.Notes[w.noteOf[t]]
}

// check refuses invalid amounts.
func (n *Note) check() error {
	if n.CPU != nil {
		if wrong := amount.Wrong(*n.CPU, "CPU"); wrong != "" {
			return invalid("%s", wrong)
		}
	}
	for name, x := range n.Resources {
		if wrong := amount.Wrong(x, name); wrong != "" {
			return invalid("%s", wrong)
		}
	}
	for _, m := range slices.Concat(n.Labels, n.Prefer) {
		if m.Op > wire.LabelAbsent {
			return invalid("a condition %d on the label %q", m.Op, m.Key)
		}
	}
	if n.Affinity > wire.AffinitySoft || n.Node > ids.MaxHome {
		return invalid("an affinity %d to node %d", n.Affinity, uint32(n.Node))
	}
	return nil
}

// build makes the graph.
func (w *Work) build(groupOf, order []int32) error {
	n := len(w.Keys)
	for i := range w.Notes {
		if err := w.Notes[i].check(); err != nil {
			return err
		}
	}
	for t := range n {
		if w.noteOf != nil && int(w.noteOf[t]) >= len(w.Notes) {
			return invalid("%q has note %d, there are %d", w.Keys[t], w.noteOf[t], len(w.Notes))
		}
	}
	tasks := make([]graph.Task, n)
	for t := range tasks {
		x := graph.Task{Key: w.Keys[t], Deps: w.deps[t], Producer: len(w.Producer) > 0 && w.Producer[t] != 0}
		if groupOf != nil {
			if g := groupOf[t]; g < 0 || int(g) >= len(w.Groups) {
				return invalid("%q is of group %d, there are %d", x.Key, g, len(w.Groups))
			}
			x.Group = w.Groups[groupOf[t]]
		}
		if note := w.Note(int32(t)); note != nil {
			x.Priority = note.Priority
			if note.Returns < 0 {
				return invalid("%q gives %d results", x.Key, note.Returns)
			}
		}
		tasks[t] = x
		for j, d := range x.Deps {
			if d < 0 || int(d) >= n {
				return &graph.MissingError{Key: fmt.Sprintf("task %d", d), By: x.Key}
			}
			if w.parts != nil && (w.parts[t][j] < 0 || w.parts[t][j] >= w.returns(d)) {
				return invalid("%q takes result %d of %q, which gives %d", x.Key, w.parts[t][j], w.Keys[d], w.returns(d))
			}
		}
	}
	if order == nil {
		ranks, err := dask.Of(shape{w})
		if err != nil { // graph.New gives the better error
			if _, better := graph.New(tasks, nil, w.wanted); better != nil {
				return better
			}
			return err
		}
		order = ranks
	}
	var err error
	w.graph, err = graph.New(tasks, order, w.wanted)
	return err
}

// shape is the graph as package order takes it.
type shape struct{ *Work }

// Len implements order.Graph.
func (s shape) Len() int { return len(s.Keys) }

// Deps implements order.Graph.
func (s shape) Deps(i int) []int32 { return s.deps[i] }

// Name implements order.Graph.
func (s shape) Name(i int) string { return s.Keys[i] }

// Kind implements order.Graph.
func (s shape) Kind(int) dask.Kind { return dask.Run }

// Len is the number of tasks.
func (w *Work) Len() int { return w.graph.Len() }

// BlobCount is how many blobs have to come with the request.
func (w *Work) BlobCount() int { return w.nblobs }

// OuterCount is how many outer objects have to come with the request.
func (w *Work) OuterCount() int { return w.nouter }

// DepsOf are the tasks whose results a task takes, in order and with repetitions.
func (w *Work) DepsOf(t int32) []int32 { return w.deps[t] }

// PartOf is which result of its jth dependency a task takes.
func (w *Work) PartOf(t int32, j int) int32 {
	if w.parts == nil {
		return 0
	}
	return w.parts[t][j]
}

// OuterOf are the outer objects that a task takes, in order.
func (w *Work) OuterOf(t int32) []int32 {
	if w.outer == nil {
		return nil
	}
	return w.outer[t]
}

// PayloadOf is where a task's payload lies. A negative size says that the task's first outer object is the payload.
func (w *Work) PayloadOf(t int32) (blob int32, from, size int64) {
	return w.blob[t], w.offset[t], int64(w.length[t])
}

// returns is how many results a task gives.
func (w *Work) returns(t int32) int32 {
	if note := w.Note(t); note != nil && note.Returns > 0 {
		return note.Returns
	}
	return 1
}
