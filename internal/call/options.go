package call

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// NoCPU as an amount of CPUs asks for none.
const NoCPU = -1

// Class has all options of a class of tasks. It is comparable, so that the same options always give the same
// *wire.TaskOptions.
type Class struct {
	cpu, gpu, memory int64 // thousandths, and bytes; cpu 0: the default
	custom, groups   string

	labels, preferLabels string // conditions, by joinTexts
	affinity             wire.Affinity
	onPanic              wire.OnPanic
	node                 ids.Home // with affinity

	Label, Group, Namespace, ActorName, Process string

	returns                                                      int32
	Retries, Backpressure                                        int32
	MaxRestarts, MaxTaskRetries, MaxConcurrency, MaxPendingCalls int32

	RetryExceptions, Isolate, Spread, Detached, GetIfExists, Escalate bool

	actor bool // takes no CPU unless it asks
}

// Options are the options of one call.
type Options struct {
	Class
	WaitForRoom bool
	Deadline    time.Time // zero: none but the context's
	err         error     // why one of them is not valid
}

// Defaults are the options of a function registered without options.
var Defaults = Options{Class: Class{Retries: 3, returns: 1, MaxConcurrency: 1, MaxPendingCalls: -1}}

// Resources sets what the task takes, in whole units.
func (o *Options) Resources(cpu, gpu float64, memory int64, custom map[string]float64) {
	o.cpu, o.gpu, o.memory, o.custom = thousandths(cpu), thousandths(gpu), memory, joinResources(custom)
}

// Labels sets conditions on the labels of the node that runs the task.
func (o *Options) Labels(m map[string]string) { o.labels = joinTexts(m) }

// PreferLabels sets conditions on the labels of the node that should run the task.
func (o *Options) PreferLabels(m map[string]string) { o.preferLabels = joinTexts(m) }

// On sets the node that runs the task, by its id; with soft another may.
func (o *Options) On(id string, soft bool) {
	home, err := ids.ParseHome(id)
	if err != nil {
		o.Refuse(err.Error() + `; "mobula list nodes" shows the ids`)
	}
	if o.node, o.affinity = home, wire.AffinityHard; soft {
		o.affinity = wire.AffinitySoft
	}
}

// PanicDirective sets what a panic of an actor does, in the order of wire's.
func (o *Options) PanicDirective(d uint8) {
	if o.onPanic = wire.OnPanic(d); o.onPanic > wire.PanicEscalates {
		o.Refuse(fmt.Sprintf("OnPanic: there is no directive %d", d))
	}
}

// AddGroup adds a concurrency group.
func (o *Options) AddGroup(name string, calls int) { o.groups = joinPair(o.groups, name, int64(calls)) }

// EndBy sets the deadline, unless an earlier one was set.
func (o *Options) EndBy(at time.Time) {
	if !at.IsZero() && (o.Deadline.IsZero() || at.Before(o.Deadline)) {
		o.Deadline = at
	}
}

// Refuse notes that an option is not valid; the first one counts.
func (o *Options) Refuse(why string) {
	if o.err == nil {
		o.err = errs.New(errs.CodeInvalid, "%s", why)
	}
}

// Count converts a number to an option's; -1 is without bound.
func Count(n int) int32 { return int32(max(min(n, math.MaxInt32), -1)) }

// optionTable interns the options of one function. Reading takes no lock.
type optionTable struct {
	known atomic.Pointer[map[Class]*wire.TaskOptions]
	mu    sync.Mutex // of writers
}

const maxInterned = 1024 // so that a program that labels every call differently does not fill the heap

func (t *optionTable) get(k Class, name string) (*wire.TaskOptions, error) {
	if m := t.known.Load(); m != nil {
		if o := (*m)[k]; o != nil {
			return o, nil
		}
	}
	o, err := k.build(name)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	m := make(map[Class]*wire.TaskOptions)
	if old := t.known.Load(); old != nil {
		if have := (*old)[k]; have != nil {
			return have, nil
		}
		if len(*old) >= maxInterned {
			return o, nil
		}
		maps.Copy(m, *old)
	}
	m[k] = o
	t.known.Store(&m)
	return o, nil
}

func (k Class) build(name string) (*wire.TaskOptions, error) {
	o := &wire.TaskOptions{
		Func: name, NumReturns: k.returns, MaxRetries: k.Retries, RetryExceptions: k.RetryExceptions, Isolate: k.Isolate,
		Backpressure: k.Backpressure, Spread: k.Spread, Label: k.Label,
		MaxRestarts: k.MaxRestarts, MaxTaskRetries: k.MaxTaskRetries, MaxConcurrency: k.MaxConcurrency, MaxPendingCalls: k.MaxPendingCalls,
		Namespace: k.Namespace, ActorName: k.ActorName, Detached: k.Detached, GetIfExists: k.GetIfExists, Group: k.Group,
		Process: k.Process, Escalate: k.Escalate, OnPanic: k.onPanic, Affinity: k.affinity, Node: k.node,
	}
	if err := k.selectors(o); err != nil {
		return nil, err
	}
	if !utf8.ValidString(k.ActorName) || !utf8.ValidString(k.Namespace) {
		return nil, errs.New(errs.CodeInvalid, "%s: the actor's name %q in namespace %q is not UTF-8", name, k.ActorName, k.Namespace)
	}
	if k.Detached && k.ActorName == "" {
		return nil, errs.New(errs.CodeInvalid, "%s: a detached actor needs a name to be found by: add Named", name)
	}
	if k.GetIfExists && k.ActorName == "" {
		return nil, errs.New(errs.CodeInvalid, "%s: GetIfExists needs a name to look for: add Named", name)
	}
	if k.Isolate && k.Process != "" {
		return nil, errs.New(errs.CodeInvalid, "%s: Isolated gives a process of its own, Process(%q) one that is shared: give one of them", name, k.Process)
	}
	if k.MaxConcurrency < 1 {
		return nil, errs.New(errs.CodeInvalid, "%s: MaxConcurrency %d, want at least 1", name, k.MaxConcurrency)
	}
	if k.cpu != 0 || k.gpu != 0 || k.memory != 0 || k.custom != "" {
		if err := k.resources(o); err != nil {
			return nil, err
		}
	}
	for _, g := range splitPairs(k.groups) {
		if g.value < 1 {
			return nil, errs.New(errs.CodeInvalid, "%s: concurrency group %q of %d calls, want at least 1", name, g.name, g.value)
		}
		o.Groups = append(o.Groups, wire.ConcurrencyGroup{Name: g.name, Max: int32(g.value)})
	}
	return o, nil
}

// selectors reads the conditions on labels.
func (k Class) selectors(o *wire.TaskOptions) (err error) {
	if k.Spread && k.affinity != wire.AffinityNone {
		return errs.New(errs.CodeInvalid, "%s: Spread takes one node after the other, OnNode and PreferNode name one: give one of them", o.Func)
	}
	if o.Labels, err = selector(k.labels); err != nil {
		return errs.New(errs.CodeInvalid, "%s: Labels: %v", o.Func, err)
	}
	if o.PreferLabels, err = selector(k.preferLabels); err != nil {
		return errs.New(errs.CodeInvalid, "%s: PreferLabels: %v", o.Func, err)
	}
	return nil
}

// resources lists the amounts asked for. Where none of a CPU is said a task takes one, so that it is to take none is said by an amount of zero: a list without an
// element is no different from no list on its way to the node.
func (k Class) resources(o *wire.TaskOptions) error {
	add := func(name string, n int64) error {
		if n < 0 {
			return errs.New(errs.CodeInvalid, "%s: %d of resource %q, want 0 or more", o.Func, n, name)
		}
		if n > 0 {
			o.Resources = append(o.Resources, wire.Resource{Name: name, Amount: n})
		}
		return nil
	}
	cpu := k.cpu
	switch {
	case cpu == NoCPU*1000:
		cpu, o.Resources = 0, []wire.Resource{{Name: "CPU"}}
	case cpu == 0 && !k.actor:
		cpu = 1000
	}
	for _, err := range []error{add("CPU", cpu), add("GPU", k.gpu), add("memory", k.memory)} {
		if err != nil {
			return err
		}
	}
	for _, p := range splitPairs(k.custom) {
		if p.name == "CPU" || p.name == "GPU" || p.name == "memory" || p.name == "" {
			return errs.New(errs.CodeInvalid, "%s: custom resource %q: use the field of Resources, or another name", o.Func, p.name)
		}
		if err := add(p.name, p.value); err != nil {
			return err
		}
	}
	slices.SortFunc(o.Resources, func(a, b wire.Resource) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// Resolve gives the interned options of a call and its deadline, the zero time without one. A nil o means the
// function's defaults.
func (f *Function) Resolve(ctx context.Context, o *Options) (*wire.TaskOptions, time.Time, error) {
	deadline, _ := ctx.Deadline()
	switch {
	case f.err != nil:
		return nil, time.Time{}, f.err
	case o == nil:
		return f.plain, deadline, nil
	case o.err != nil:
		return nil, time.Time{}, o.err
	}
	if !o.Deadline.IsZero() && (deadline.IsZero() || o.Deadline.Before(deadline)) {
		deadline = o.Deadline
	}
	if o.Class == f.base.Class {
		return f.plain, deadline, nil
	}
	t, err := f.options.get(o.Class, f.name)
	return t, deadline, err
}

// thousandths rounds, but never to 0.
func thousandths(x float64) int64 {
	if n := math.Round(x * 1000); n != 0 || x == 0 {
		return int64(n)
	}
	return int64(math.Copysign(1, x))
}

type pair struct {
	name  string
	value int64
}

func joinPair(to, name string, value int64) string {
	return to + strconv.Quote(name) + "=" + strconv.FormatInt(value, 10) + ";"
}

func joinResources(m map[string]float64) (out string) {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = joinPair(out, name, thousandths(m[name]))
	}
	return out
}

func splitPairs(s string) (out []pair) {
	for s != "" {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return out
		}
		name, _ := strconv.Unquote(quoted)
		num, rest, _ := strings.Cut(s[len(quoted)+1:], ";")
		n, _ := strconv.ParseInt(num, 10, 64)
		out = append(out, pair{name, n})
		s = rest
	}
	return out
}
