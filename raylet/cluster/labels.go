package cluster

import (
	"slices"
	"strings"

	"mobula/internal/errs"
)

// Op is what a Match asks of a label.
type Op uint8

// The operators, which are Ray's.
const (
	In     Op = iota // its value is one of Values
	NotIn            // its value is none of Values, or there is no such label
	Exists           // there is such a label
	Absent           // there is none
)

// Match is one condition on a node's labels.
type Match struct {
	Key    string
	Op     Op
	Values []string // of In and NotIn
}

// Selector is conditions that all have to hold; without any every node is selected.
type Selector []Match

// Matches tells whether labels are as selected.
func (s Selector) Matches(labels map[string]string) bool {
	for i := range s {
		if !s[i].holds(labels) {
			return false
		}
	}
	return true
}

func (m *Match) holds(labels map[string]string) bool {
	value, there := labels[m.Key]
	switch m.Op {
	case In:
		return there && slices.Contains(m.Values, value)
	case NotIn:
		return !there || !slices.Contains(m.Values, value)
	case Exists:
		return there
	default:
		return !there
	}
}

func (m Match) validate() error {
	takesValues := m.Op == In || m.Op == NotIn
	if m.Key == "" || m.Op > Absent || takesValues != (len(m.Values) > 0) {
		return errs.New(errs.CodeInvalid, "label selector %q: want a key, an operator, and values with \"in\" and \"not in\" alone", m.String())
	}
	return nil
}

// preferred narrows the free nodes to those that a shape would rather have.
func preferred(v *View, free set, s *Shape) set {
	if len(s.Prefer) == 0 {
		return free
	}
	return free.rather(v, func(n *Node) bool { return s.Prefer.Matches(n.Labels) })
}

func (s Selector) equal(o Selector) bool {
	return slices.EqualFunc(s, o, func(a, b Match) bool { return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values) })
}

// String is "zone in (a, b) and ssd exists".
func (s Selector) String() string {
	var parts []string
	for _, m := range s {
		parts = append(parts, m.String())
	}
	return strings.Join(parts, " and ")
}

// String is "zone in (a, b)".
func (m Match) String() string {
	values := "(" + strings.Join(m.Values, ", ") + ")"
	switch m.Op {
	case In:
		return m.Key + " in " + values
	case NotIn:
		return m.Key + " not in " + values
	case Exists:
		return m.Key + " exists"
	case Absent:
		return m.Key + " is absent"
	}
	return m.Key + " with no operator"
}
