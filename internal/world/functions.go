package world

import (
	"encoding/binary"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire"
)

// functions are what workers run. What each gives follows from its arguments, so that it may run again, and its caller knows what to expect.
var functions map[string]func(c *call) ([]wire.Result, *errs.Error)

func init() {
	functions = map[string]func(c *call) ([]wire.Result, *errs.Error){
		"sum":    sum,
		"big":    big,
		"multi":  multi,
		"wrap":   wrap,
		"give":   give,
		"pair":   pair,
		"kids":   kids,
		"tree0":  sum,
		"tree1":  tree,
		"tree2":  tree,
		"flaky":  flaky,
		"fail":   fails,
		"nap":    nap,
		"new":    construct,
		"inc":    increment,
		"flow":   produce,
		"stream": produce,
	}
}

// options are those that programs call functions with. Their pointers are the classes.
var options = map[string]*wire.TaskOptions{
	"sum":    {Func: "sum", NumReturns: 1, MaxRetries: -1},
	"big":    {Func: "big", NumReturns: 1, MaxRetries: -1},
	"multi":  {Func: "multi", NumReturns: 3, MaxRetries: -1},
	"wrap":   {Func: "wrap", NumReturns: 1, MaxRetries: -1},
	"give":   {Func: "give", NumReturns: 1, MaxRetries: -1},
	"pair":   {Func: "pair", NumReturns: 2, MaxRetries: -1},
	"kids":   {Func: "kids", NumReturns: 1, MaxRetries: -1},
	"tree0":  {Func: "tree0", NumReturns: 1, MaxRetries: -1},
	"tree1":  {Func: "tree1", NumReturns: 1, MaxRetries: -1},
	"tree2":  {Func: "tree2", NumReturns: 1, MaxRetries: -1},
	"flaky":  {Func: "flaky", NumReturns: 1, MaxRetries: -1, RetryExceptions: true, ExceptionRetries: -1},
	"fail":   {Func: "fail", NumReturns: 1, MaxRetries: -1},
	"nap":    {Func: "nap", NumReturns: 1, MaxRetries: -1},
	"alone":  {Func: "sum", NumReturns: 1, MaxRetries: -1, Isolate: true},
	"once":   {Func: "big", NumReturns: 1, MaxRetries: 1},
	"new":    {Func: "new", NumReturns: 1, MaxRestarts: -1, MaxTaskRetries: -1, MaxPendingCalls: -1},
	"inc":    {Func: "inc", NumReturns: 1},
	"flow":   {Func: "flow", NumReturns: wire.Streaming, MaxRetries: -1},
	"stream": {Func: "stream", NumReturns: wire.Streaming, MaxRetries: -1, Backpressure: 2},
}

// treeOf is the function that a tree calls.
var treeOf = map[string]string{"tree1": "tree0", "tree2": "tree1"}

// mix makes a value of values.
func mix(parts ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = (h ^ p) * 0xd6e8feb86659fd93
		h ^= h >> 29
	}
	return h | 1
}

// resultOf is the i-th result of a function that calls no other.
func resultOf(args []uint64, i int) uint64 { return mix(append([]uint64{uint64(i)}, args...)...) }

// kidsOf is what kids gives, treeValue what a tree does.
func kidsOf(args []uint64) uint64 {
	first := []uint64{resultOf(args, 0)}
	return mix(resultOf(first, 1), resultOf([]uint64{resultOf(first, 0)}, 0))
}

func treeValue(fn string, args []uint64) uint64 {
	below, deeper := treeOf[fn]
	if !deeper {
		return resultOf(args, 0)
	}
	v := resultOf(args, 0)
	return mix(treeValue(below, []uint64{v}), treeValue(below, []uint64{v + 1}))
}

// The sizes of values follow from the values.
func smallSize(v uint64) int { return int(8 + 8*(v%64)) }
func largeSize(v uint64) int { return int(2<<10+8*(v>>8%1500)) &^ 7 }

func sum(c *call) ([]wire.Result, *errs.Error) {
	v := resultOf(c.vals(), 0)
	return []wire.Result{c.inline(v, smallSize(v))}, nil
}

func big(c *call) ([]wire.Result, *errs.Error) {
	v := resultOf(c.vals(), 0)
	return []wire.Result{c.stored(0, v, largeSize(v))}, nil
}

func multi(c *call) ([]wire.Result, *errs.Error) {
	var out []wire.Result
	for i := range 3 {
		if v := resultOf(c.vals(), i); i == 1 {
			out = append(out, c.stored(i, v, largeSize(v)))
		} else {
			out = append(out, c.inline(v, smallSize(v)))
		}
	}
	return out, nil
}

// wrap gives a reference to something that it puts, large or small.
func wrap(c *call) ([]wire.Result, *errs.Error) {
	v, inner := resultOf(c.vals(), 0), resultOf(c.vals(), 1)
	size := smallSize(inner)
	if inner&2 != 0 {
		size = largeSize(inner)
	}
	return []wire.Result{c.inline(v, smallSize(v), c.put(inner, size))}, nil
}

// give passes on the references in its arguments.
func give(c *call) ([]wire.Result, *errs.Error) {
	var refs []ids.ObjectID
	for _, a := range c.args {
		for _, id := range a.refs {
			c.p.hold(id, true)
			c.held = append(c.held, id)
			refs = append(refs, id)
		}
	}
	v := resultOf(c.vals(), 0)
	return []wire.Result{c.inline(v, smallSize(v), refs...)}, nil
}

func pair(c *call) ([]wire.Result, *errs.Error) {
	v, w := resultOf(c.vals(), 0), resultOf(c.vals(), 1)
	return []wire.Result{c.inline(v, smallSize(v)), c.stored(1, w, largeSize(w))}, nil
}

// byValue is an argument of a value.
func byValue(v uint64) wire.Arg { return wire.Arg{Value: wire.Value{Data: bytesOf(v, 8)}} }

// kids calls two functions, the second with a result of the first, and waits for both.
func kids(c *call) ([]wire.Result, *errs.Error) {
	first := c.submit(options["pair"], byValue(resultOf(c.vals(), 0)))
	second := c.submit(options["sum"], wire.Arg{Ref: first[0]})
	return c.mixed(first[1], second[0])
}

// tree calls itself, twice a level.
func tree(c *call) ([]wire.Result, *errs.Error) {
	below := options[treeOf[c.item.Spec.Opts.Func]]
	v := resultOf(c.vals(), 0)
	return c.mixed(c.submit(below, byValue(v))[0], c.submit(below, byValue(v+1))[0])
}

// mixed waits for objects and gives one value of theirs.
func (c *call) mixed(list ...ids.ObjectID) ([]wire.Result, *errs.Error) {
	var vals []uint64
	for _, out := range c.get(list...) {
		if out.err != nil {
			return nil, &errs.Error{Code: errs.CodeTaskFailed, Msg: "a child failed", Cause: []*errs.Error{out.err.Bare()}}
		}
		vals = append(vals, out.val)
	}
	v := mix(vals...)
	return []wire.Result{c.inline(v, smallSize(v))}, nil
}

// flaky fails half of the time.
func flaky(c *call) ([]wire.Result, *errs.Error) {
	if c.p.w.rng.IntN(2) == 0 {
		return fails(c)
	}
	return big(c)
}

func fails(*call) ([]wire.Result, *errs.Error) {
	return nil, errs.New(errs.CodeTaskFailed, "it fails")
}

// nap takes long, and ends with its context.
func nap(c *call) ([]wire.Result, *errs.Error) {
	c.await("a nap", func() bool { return false }, 30e6)
	return sum(c)
}

// construct makes an actor.
func construct(c *call) ([]wire.Result, *errs.Error) { return []wire.Result{c.inline(1, 8)}, nil }

// increment is an actor's method: it gives the instance and how often it was called, and sometimes a reference to something that it puts, which is its own
// job's.
func increment(c *call) ([]wire.Result, *errs.Error) {
	a := c.lane.actor
	a.count++
	var refs []ids.ObjectID
	if a.count%2 == 0 {
		v := mix(binary.BigEndian.Uint64(c.task[len(c.task)-8:])) // the same if the call runs again
		size := smallSize(v)
		if v&6 != 0 {
			size = largeSize(v)
		}
		refs = append(refs, c.put(v, size))
	}
	return []wire.Result{c.inline(a.number<<32|a.count, 8, refs...)}, nil
}
