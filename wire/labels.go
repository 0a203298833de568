package wire

import (
	"fmt"
	"slices"
	"strings"

	"mobula/internal/errs"
	"mobula/internal/labels"
)

// LabelOp is what a LabelMatch asks of a label.
type LabelOp uint8

// The operators, which are Ray's.
const (
	LabelIn     LabelOp = iota // its value is one of Values
	LabelNotIn                 // its value is none of Values, or there is no such label
	LabelExists                // there is such a label
	LabelAbsent                // there is none
)

// LabelMatch is one condition on a node's labels.
type LabelMatch struct {
	Key    string
	Op     LabelOp
	Values []string // of LabelIn and LabelNotIn
}

// Selector is conditions that all have to hold; without any every node is selected.
type Selector []LabelMatch

// Affinity is what TaskOptions.Node is to a task.
type Affinity uint8

// The kinds of affinity.
const (
	AffinityNone Affinity = iota // Node says nothing
	AffinityHard                 // it runs there and nowhere else
	AffinitySoft                 // it runs there, or elsewhere where that node is gone or can never run it
)

// Matches tells whether labels are as selected.
func (s Selector) Matches(of map[string]string) bool { return s.Unmet(of) == nil }

// Unmet gives the first condition that does not hold; nil: all do.
func (s Selector) Unmet(of map[string]string) *LabelMatch {
	for i := range s {
		if !s[i].holds(of) {
			return &s[i]
		}
	}
	return nil
}

func (m *LabelMatch) holds(of map[string]string) bool {
	value, there := of[m.Key]
	switch m.Op {
	case LabelIn:
		return there && slices.Contains(m.Values, value)
	case LabelNotIn:
		return !there || !slices.Contains(m.Values, value)
	case LabelExists:
		return there
	default:
		return !there
	}
}

// Validate says what is wrong with a selector.
func (s Selector) Validate() error {
	for i := range s {
		if err := s[i].validate(); err != nil {
			return errs.New(errs.CodeInvalid, "label selector %q: %v", s[i].String(), err)
		}
	}
	return nil
}

func (m *LabelMatch) validate() error {
	if takes := m.Op == LabelIn || m.Op == LabelNotIn; m.Op > LabelAbsent || takes != (len(m.Values) > 0) {
		return fmt.Errorf("want an operator, and values with \"in\" and \"not in\" alone")
	}
	for _, value := range m.Values {
		if err := labels.CheckValue(value); err != nil {
			return err
		}
	}
	return labels.CheckKey(m.Key)
}

// Equal tells whether two selectors have the same conditions in the same order.
func (s Selector) Equal(o Selector) bool {
	return slices.EqualFunc(s, o, func(a, b LabelMatch) bool { return a.Key == b.Key && a.Op == b.Op && slices.Equal(a.Values, b.Values) })
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
func (m LabelMatch) String() string {
	values := "(" + strings.Join(m.Values, ", ") + ")"
	switch m.Op {
	case LabelIn:
		return m.Key + " in " + values
	case LabelNotIn:
		return m.Key + " not in " + values
	case LabelExists:
		return m.Key + " exists"
	case LabelAbsent:
		return m.Key + " is absent"
	}
	return m.Key + " with no operator"
}
