package cluster

import (
	"cmp"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/sched"
	"mobula/wire"
)

// Kind is a strategy's.
type Kind uint8

// The kinds of strategy.
const (
	Hybrid   Kind = iota // the default
	Spread               // wire.TaskOptions.Spread
	Affinity             // to Strategy.Node: wire.TaskOptions.Affinity
)

// Strategy is how a node is chosen among those that could run a shape.
type Strategy struct {
	Kind Kind
	Node ids.Home // of Affinity
	Soft bool     // of Affinity: any other where that node can never run it
}

// Shape is what all demands of one class ask of a node. It does not change.
type Shape struct {
	Need     []wire.Resource // above zero, by name
	Labels   wire.Selector   // which nodes may run it
	Prefer   wire.Selector   // which of them should, where one is free
	Strategy Strategy
}

// ShapeOf reads what the options of a task say, or of an actor's creation.
func ShapeOf(opts *wire.TaskOptions, kind wire.TaskKind) (Shape, error) {
	need, _, err := sched.Asked(opts, kind)
	if err != nil {
		return Shape{}, err
	}
	s := Shape{Need: need}
	slices.SortFunc(s.Need, func(a, b wire.Resource) int { return cmp.Compare(a.Name, b.Name) })
	if opts == nil {
		return s, nil
	}
	s.Labels, s.Prefer = opts.Labels, opts.PreferLabels
	switch {
	case opts.Spread:
		s.Strategy.Kind = Spread
	case opts.Affinity != wire.AffinityNone:
		s.Strategy = Strategy{Kind: Affinity, Node: opts.Node, Soft: opts.Affinity == wire.AffinitySoft}
	}
	return s, nil
}

// Validate says what is wrong with a shape that did not come from ShapeOf.
func (s Shape) Validate() error {
	for i, x := range s.Need {
		if x.Name == "" || x.Amount <= 0 {
			return errs.New(errs.CodeInvalid, "resource %q of %d: want a name and an amount above zero", x.Name, x.Amount)
		}
		if i > 0 && s.Need[i-1].Name >= x.Name {
			return errs.New(errs.CodeInvalid, "resource %q stands behind %q: want each once, by name", x.Name, s.Need[i-1].Name)
		}
	}
	if err := slices.Concat(s.Labels, s.Prefer).Validate(); err != nil {
		return err
	}
	if st := s.Strategy; st.Kind > Affinity || st.Kind != Affinity && (st.Node != 0 || st.Soft) {
		return errs.New(errs.CodeInvalid, "strategy %+v: want hybrid, spread, or affinity to a node", st)
	}
	return nil
}

// Equal tells whether two shapes ask the same.
func (s Shape) Equal(o Shape) bool {
	return s.Strategy == o.Strategy && slices.Equal(s.Need, o.Need) && s.Labels.Equal(o.Labels) && s.Prefer.Equal(o.Prefer)
}

// asks tells whether the shape asks for a resource.
func (s *Shape) asks(name string) bool { return amountOf(s.Need, name) > 0 }

// String names the shape: "CPU 1, GPU 2, on nodes where zone in (a, b), spread".
func (s Shape) String() string { return s.text(ids.Home.String) }

func (s *Shape) text(nameOf func(ids.Home) string) string {
	var parts []string
	for _, x := range s.Need {
		parts = append(parts, x.Name+" "+sched.Amount(x.Name, x.Amount))
	}
	if len(parts) == 0 {
		parts = []string{"no resources"}
	}
	if len(s.Labels) > 0 {
		parts = append(parts, "on nodes where "+s.Labels.String())
	}
	if len(s.Prefer) > 0 {
		parts = append(parts, "rather where "+s.Prefer.String())
	}
	switch st := s.Strategy; {
	case st.Kind == Spread:
		parts = append(parts, "spread")
	case st.Kind == Affinity && st.Soft:
		parts = append(parts, "rather on node "+nameOf(st.Node))
	case st.Kind == Affinity:
		parts = append(parts, "on node "+nameOf(st.Node))
	}
	return strings.Join(parts, ", ")
}

// Demand is one task that wants a node, or several of a class that are asked for together.
type Demand struct {
	Shape
	Args []Held // bytes of its stored arguments, where they are; each node once
}

// Held is how many bytes of a demand's arguments a node has.
type Held struct {
	Node  ids.Home
	Bytes uint64
}
