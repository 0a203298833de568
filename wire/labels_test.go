package wire

import (
	"errors"
	"strings"
	"testing"

	"mobula/internal/errs"
)

func TestSelectors(t *testing.T) {
	of := map[string]string{"zone": "a", "rack": "3"}
	m := func(key string, op LabelOp, values ...string) LabelMatch {
		return LabelMatch{Key: key, Op: op, Values: values}
	}
	for _, c := range []struct {
		s     Selector
		unmet string // empty: it matches
		shown string
	}{
		{nil, "", ""},
		{Selector{m("zone", LabelIn, "a", "b")}, "", "zone in (a, b)"},
		{Selector{m("zone", LabelIn, "b")}, "zone in (b)", "zone in (b)"},
		{Selector{m("ssd", LabelIn, "yes")}, "ssd in (yes)", "ssd in (yes)"},
		{Selector{m("zone", LabelNotIn, "b")}, "", "zone not in (b)"},
		{Selector{m("zone", LabelNotIn, "a", "b")}, "zone not in (a, b)", "zone not in (a, b)"},
		{Selector{m("ssd", LabelNotIn, "yes")}, "", "ssd not in (yes)"},
		{Selector{m("zone", LabelExists), m("ssd", LabelExists)}, "ssd exists", "zone exists and ssd exists"},
		{Selector{m("ssd", LabelAbsent), m("zone", LabelAbsent)}, "zone is absent", "ssd is absent and zone is absent"},
	} {
		unmet := ""
		if x := c.s.Unmet(of); x != nil {
			unmet = x.String()
		}
		if unmet != c.unmet || c.s.Matches(of) != (c.unmet == "") || c.s.String() != c.shown {
			t.Errorf("%q does not hold for %q, want %q; shown as %q", c.s, unmet, c.unmet, c.s.String())
		}
		if err := c.s.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestMalformedSelectors(t *testing.T) {
	for want, m := range map[string]LabelMatch{
		"values with":      {Key: "zone"},
		"with no operator": {Key: "zone", Op: 9},
		"and \"not in\"":   {Key: "zone", Op: LabelExists, Values: []string{"a"}},
		`label ""`:         {Op: LabelAbsent},
		`"a b" is no name`: {Key: "a b", Op: LabelExists},
		`the value "a,b"`:  {Key: "zone", Values: []string{"a,b"}},
		`the value ""`:     {Key: "zone", Op: LabelNotIn, Values: []string{"a", ""}},
	} {
		if err := (Selector{m}).Validate(); !errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", m, err, want)
		}
	}
}

// Options of a program that knows nothing of labels and nodes say nothing of them.
func TestOptionsWithoutPlacesReadAsBefore(t *testing.T) {
	spec := func(o *TaskOptions) *Submit { return &Submit{Spec: &TaskSpec{Opts: o}} }
	with := &TaskOptions{Func: "f", NumReturns: 1, Escalate: true, Labels: []LabelMatch{{Key: "zone", Values: []string{"a", ""}}}, PreferLabels: []LabelMatch{{}},
		Affinity: AffinitySoft, Node: 1 << 26}
	without := &TaskOptions{Func: "f", NumReturns: 1, Escalate: true}
	long, short := rawFrame(t, spec(with)), rawFrame(t, spec(without))
	if len(long) <= len(short) {
		t.Fatalf("%d and %d bytes", len(long), len(short))
	}
	msgs, err := receive(short, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if o := msgs[0].(*Submit).Spec.Opts; o.Labels != nil || o.PreferLabels != nil || o.Affinity != AffinityNone || o.Node != 0 || o.Func != "f" {
		t.Errorf("read as %+v", o)
	}
	if msgs, err = receive(long, 1<<20); err != nil {
		t.Fatal(err)
	}
	if o := msgs[0].(*Submit).Spec.Opts; !Selector(o.Labels).Equal(with.Labels) || !Selector(o.PreferLabels).Equal(with.PreferLabels) || o.Affinity != with.Affinity || o.Node != with.Node {
		t.Errorf("read as %+v", o)
	}
}
