package run

import (
	"math"
	"slices"

	"mobula/graph"
	"mobula/wire"
)

// defaultRetries is the default number of retries of a task whose errors are retried.
const defaultRetries = 3

// Options gives tasks their options: one shared object for all with the same.
type Options struct {
	w    *Work
	made map[optionKey]*wire.TaskOptions
}

type optionKey struct {
	note  int32
	label string
}

// NewOptions makes the options of a request.
func NewOptions(w *Work) *Options {
	return &Options{w: w, made: make(map[optionKey]*wire.TaskOptions)}
}

// Of gives the options of a task.
func (o *Options) Of(t int32) *wire.TaskOptions {
	k := optionKey{note: -1, label: graph.KeyPrefix(o.w.graph.Group(t))}
	if o.w.noteOf != nil {
		k.note = o.w.noteOf[t]
	}
	x := o.made[k]
	if x == nil {
		x = o.w.Note(t).Options(o.w.Func, k.label, o.w.Failures)
		o.made[k] = x
	}
	return x
}

// Options gives the options of a call of a function for a task with the note n, which may be nil. The task fails after
// that many deaths of workers.
func (n *Note) Options(function, label string, failures int32) *wire.TaskOptions {
	x := &wire.TaskOptions{Func: function, NumReturns: 1, MaxRetries: max(failures-1, 0), Label: label, MaxConcurrency: 1, MaxPendingCalls: -1}
	if n != nil {
		n.apply(x)
	}
	return x
}

// apply writes a note into options.
func (n *Note) apply(x *wire.TaskOptions) {
	switch {
	case n.Failures < 0:
		x.MaxRetries = -1
	case n.Failures > 0:
		x.MaxRetries = n.Failures - 1
	}
	x.NumReturns = max(n.Returns, 1)
	x.Isolate, x.Spread = n.Isolated, n.Spread
	x.Labels, x.PreferLabels, x.Affinity, x.Node = n.Labels, n.Prefer, n.Affinity, n.Node
	x.RetryExceptions, x.RetryOnly = n.Errors || n.Retries > 0, n.Only
	switch {
	case n.Retries > 0:
		x.ExceptionRetries = n.Retries
	case n.Errors && n.Failures == 0: // as for a task outside a graph; the graph counts the deaths of its workers
		x.ExceptionRetries = defaultRetries
	}
	if n.CPU == nil && len(n.Resources) == 0 {
		return
	}
	cpu := 1.0
	if n.CPU != nil {
		cpu = *n.CPU
	}
	x.Resources = []wire.Resource{{Name: "CPU", Amount: thousandths(cpu)}}
	for name, amount := range n.Resources {
		switch name {
		case "CPU":
			x.Resources[0].Amount = thousandths(amount)
		case "memory":
			x.Resources = append(x.Resources, wire.Resource{Name: name, Amount: int64(amount)})
		default:
			x.Resources = append(x.Resources, wire.Resource{Name: name, Amount: thousandths(amount)})
		}
	}
	slices.SortFunc(x.Resources, func(a, b wire.Resource) int {
		switch {
		case a.Name < b.Name:
			return -1
		case a.Name > b.Name:
			return 1
		}
		return 0
	})
}

// Deadline is the deadline of a task that is submitted now.
func (n *Note) Deadline(now int64) int64 {
	if n == nil || n.Timeout <= 0 {
		return 0
	}
	return now + n.Timeout
}

func thousandths(x float64) int64 { return int64(math.Ceil(x * 1000)) }
