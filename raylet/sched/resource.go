package sched

import (
	"fmt"
	"slices"
	"strconv"

	"mobula/internal/errs"
	"mobula/wire"
)

// Names of the resources that every node has. Amounts are in thousandths, of memory in bytes.
const (
	CPU    = "CPU"
	GPU    = "GPU"
	Memory = "memory"
)

// OneCPU is the CPU of a task that does not ask for an amount, and of an actor while it is created.
const OneCPU = 1000

// need is an amount of one resource, by the resource's number in the core.
type need struct {
	r int
	n int64
}

// demand is what a lease takes: positive amounts, each resource once.
type demand []need

// of is the amount of a resource.
func (d demand) of(r int) int64 {
	for _, x := range d {
		if x.r == r {
			return x.n
		}
	}
	return 0
}

// resCPU is the number of the CPU in every core.
const resCPU = 0

// resources is the node's account: what it has, what is free, and what is held by leases that cannot return it
// (blocked in a get, or actors for life).
type resources struct {
	names []string
	index map[string]int
	total []int64
	free  []int64
	stuck []int64
}

func newResources(total []wire.Resource) *resources {
	rs := &resources{index: make(map[string]int)}
	rs.number(CPU)
	for _, r := range total {
		i := rs.number(r.Name)
		rs.total[i], rs.free[i] = r.Amount, r.Amount
	}
	return rs
}

// number gives a resource's index; a new name gets an amount of zero.
func (rs *resources) number(name string) int {
	if i, ok := rs.index[name]; ok {
		return i
	}
	i := len(rs.names)
	rs.index[name] = i
	rs.names = append(rs.names, name)
	rs.total, rs.free, rs.stuck = append(rs.total, 0), append(rs.free, 0), append(rs.stuck, 0)
	return i
}

// setTotal replaces the totals; amounts that are taken stay taken, so free may fall below zero.
func (rs *resources) setTotal(total []wire.Resource) {
	next := make([]int64, len(rs.total))
	for _, r := range total {
		i := rs.number(r.Name)
		if i >= len(next) {
			next = append(next, 0)
		}
		next[i] = r.Amount
	}
	for i := range rs.total {
		rs.free[i] += next[i] - rs.total[i]
		rs.total[i] = next[i]
	}
}

func (rs *resources) take(d demand) {
	for _, x := range d {
		rs.free[x.r] -= x.n
	}
}

func (rs *resources) give(d demand) {
	for _, x := range d {
		rs.free[x.r] += x.n
	}
}

func (rs *resources) stick(d demand) {
	for _, x := range d {
		rs.stuck[x.r] += x.n
	}
}

func (rs *resources) unstick(d demand) {
	for _, x := range d {
		rs.stuck[x.r] -= x.n
	}
}

// Asked reads what a class asks for: for the grant, and for an actor's lifetime. Amounts are above zero, each resource is there once. Without an amount
// of CPU a task takes one, and an actor one for its creation only; {"CPU", 0} asks for none. It fails where the options can be meant for no node.
func Asked(opts *wire.TaskOptions, kind wire.TaskKind) (grant, life []wire.Resource, err *errs.Error) {
	said := false
	var asked []wire.Resource
	if opts != nil {
		asked = opts.Resources
		if err := checkWhere(opts); err != nil {
			return nil, nil, err
		}
	}
	for i, x := range asked {
		switch {
		case x.Name == "":
			return nil, nil, errs.New(errs.CodeInvalid, "%s: a resource of amount %d has no name", funcName(opts), x.Amount)
		case x.Amount < 0:
			return nil, nil, errs.New(errs.CodeInvalid, "%s: resource %q: amount %s is negative", funcName(opts), x.Name, Amount(x.Name, x.Amount))
		case slices.ContainsFunc(asked[:i], func(y wire.Resource) bool { return y.Name == x.Name }):
			return nil, nil, errs.New(errs.CodeInvalid, "%s: resource %q is named twice", funcName(opts), x.Name)
		}
		said = said || x.Name == CPU
		if x.Amount > 0 {
			grant = append(grant, x)
		}
	}
	if kind == wire.TaskActorCreate {
		life = slices.Clone(grant)
	}
	if !said {
		grant = append(grant, wire.Resource{Name: CPU, Amount: OneCPU})
	}
	return grant, life, nil
}

// demandOf reads what a class asks for.
func (rs *resources) demandOf(opts *wire.TaskOptions, kind wire.TaskKind) (grant, life demand, err *errs.Error) {
	g, l, err := Asked(opts, kind)
	return rs.numbered(g), rs.numbered(l), err
}

func (rs *resources) numbered(asked []wire.Resource) demand {
	var d demand
	for _, x := range asked {
		d = append(d, need{rs.number(x.Name), x.Amount})
	}
	return d
}

// infeasible is an error that names the first resource of which the node has less than asked for, or nil.
func (rs *resources) infeasible(d demand, name string) *errs.Error {
	for _, x := range d {
		if x.n > rs.total[x.r] {
			r := rs.names[x.r]
			return errs.New(errs.CodeUnschedulable, "%s asks %s %s, this node has %s; ask less or start a node that has it",
				name, Amount(r, x.n), r, Amount(r, rs.total[x.r]))
		}
	}
	return nil
}

func funcName(opts *wire.TaskOptions) string {
	switch {
	case opts == nil:
		return "task"
	case opts.Label != "":
		return opts.Label
	}
	return opts.Func
}

// Amount prints thousandths as a decimal and memory as bytes.
func Amount(name string, n int64) string {
	if name == Memory {
		return fmt.Sprintf("%d B", n)
	}
	return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64)
}
