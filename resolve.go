package mobula

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mobula/internal/errs"
	"mobula/wire"
)

// optionKey is everything an option can say about a class of tasks, comparable, so that
// the same options always give the same *wire.TaskOptions.
type optionKey struct {
	cpu, gpu                                    int64 // thousandths; cpu 0: the default
	memory                                      int64 // bytes
	custom                                      string
	groups                                      string
	label, group, namespace, actorName, process string

	retries, returns, backpressure              int32
	restarts, taskRetries, concurrency, pending int32

	retryExceptions, isolate, spread, detached, getIfExists, escalate, waitForRoom bool

	actor bool // takes no CPU unless it asks
}

var defaults = optionKey{retries: 3, returns: 1, concurrency: 1, pending: -1}

// optionTable interns the options of one function. Reading takes no lock.
type optionTable struct {
	known atomic.Pointer[map[optionKey]*wire.TaskOptions]
	mu    sync.Mutex // of writers
}

const maxInterned = 1024 // a program that labels every call with another name shall not fill the heap

func (t *optionTable) get(k optionKey, name string) (*wire.TaskOptions, error) {
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
	m := make(map[optionKey]*wire.TaskOptions)
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

func (k optionKey) build(name string) (*wire.TaskOptions, error) {
	o := &wire.TaskOptions{
		Func: name, NumReturns: k.returns, MaxRetries: k.retries, RetryExceptions: k.retryExceptions, Isolate: k.isolate,
		Backpressure: k.backpressure, Spread: k.spread, Label: k.label,
		MaxRestarts: k.restarts, MaxTaskRetries: k.taskRetries, MaxConcurrency: k.concurrency, MaxPendingCalls: k.pending,
		Namespace: k.namespace, ActorName: k.actorName, Detached: k.detached, GetIfExists: k.getIfExists, Group: k.group,
		Process: k.process, Escalate: k.escalate,
	}
	if k.detached && k.actorName == "" {
		return nil, errs.New(errs.CodeInvalid, "%s: a detached actor needs a name to be found by: add Named", name)
	}
	if k.getIfExists && k.actorName == "" {
		return nil, errs.New(errs.CodeInvalid, "%s: GetIfExists needs a name to look for: add Named", name)
	}
	if k.isolate && k.process != "" {
		return nil, errs.New(errs.CodeInvalid, "%s: Isolated gives a process of its own, Process(%q) one that is shared: give one of them", name, k.process)
	}
	if k.concurrency < 1 {
		return nil, errs.New(errs.CodeInvalid, "%s: MaxConcurrency %d, want at least 1", name, k.concurrency)
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

// resources lists what is asked; nil would be the default, so none at all is an empty list.
func (k optionKey) resources(o *wire.TaskOptions) error {
	o.Resources = []wire.Resource{}
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
		cpu = 0
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

// resolve gives the interned options of a call and its deadline, the zero time without one.
func resolve[O any](ctx context.Context, f *function, opts []O) (*wire.TaskOptions, time.Time, error) {
	deadline, _ := ctx.Deadline()
	if len(opts) == 0 {
		return f.plain, deadline, f.err
	}
	if f.err != nil {
		return nil, time.Time{}, f.err
	}
	k := f.base
	for i := range opts {
		at, err := k.apply(any(opts[i]))
		if err != nil {
			return nil, time.Time{}, err
		}
		if !at.IsZero() && (deadline.IsZero() || at.Before(deadline)) {
			deadline = at
		}
	}
	k.waitForRoom = f.base.waitForRoom // of this process alone
	if k == f.base {
		return f.plain, deadline, nil
	}
	o, err := f.options.get(k, f.name)
	return o, deadline, err
}

// apply notes one option; a deadline is returned instead. The types are told apart here, rather
// than by a method, so that options need not be on the heap.
func (k *optionKey) apply(o any) (deadline time.Time, err error) {
	switch o := o.(type) {
	case Resources:
		k.cpu, k.gpu, k.memory = thousandths(o.CPU), thousandths(o.GPU), o.Memory
		k.custom = joinResources(o.Custom)
	case Retries:
		k.retries = clamp(int(o))
	case Label:
		k.label = string(o)
	case Timeout:
		return time.Now().Add(time.Duration(o)), nil
	case deadlineOption:
		return o.at, nil
	case retryExceptions:
		k.retryExceptions = true
	case isolatedOption:
		k.isolate = true
	case spreadOption:
		k.spread = true
	case Backpressure:
		k.backpressure = clamp(max(int(o), 0))
	case MaxRestarts:
		k.restarts = clamp(int(o))
	case MaxTaskRetries:
		k.taskRetries = clamp(int(o))
	case MaxConcurrency:
		k.concurrency = clamp(int(o))
	case MaxPendingCalls:
		k.pending = clamp(int(o))
	case Group:
		k.group = string(o)
	case waitForRoom:
		k.waitForRoom = true
	case Process:
		k.process = string(o)
	case escalateOption:
		k.escalate = true
	case detachedOption:
		k.detached = true
	case getIfExistsOpt:
		k.getIfExists = true
	case namedOption:
		if o.name == "" {
			return time.Time{}, errs.New(errs.CodeInvalid, "Named: an actor's name must not be empty")
		}
		k.namespace, k.actorName = o.namespace, o.name
	case returnsOption:
		k.returns = clamp(int(o))
	case concurrencyGroup:
		k.groups = joinPair(k.groups, o.name, int64(o.max))
	case nil:
		return time.Time{}, errs.New(errs.CodeInvalid, "an option is nil")
	}
	return time.Time{}, nil
}

func clamp(n int) int32 { return int32(max(min(n, math.MaxInt32), -1)) }

// thousandths rounds, but never to nothing.
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
