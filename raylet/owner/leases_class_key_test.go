package owner

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// placing has the options that a class is by, of few values, so that two that are drawn are often almost the same.
type placing struct {
	kind wire.TaskKind
	opts wire.TaskOptions
}

var text = rapid.SampledFrom([]string{"", "a", "b", "ab", "\x01a"})

func drawCondition(t *rapid.T) wire.LabelMatch {
	m := wire.LabelMatch{Key: text.Draw(t, "key"), Op: wire.LabelOp(rapid.IntRange(0, int(wire.LabelAbsent)).Draw(t, "op"))}
	for range rapid.IntRange(0, 2).Draw(t, "values") {
		m.Values = append(m.Values, text.Draw(t, "value"))
	}
	return m
}

func drawPlacing(t *rapid.T) placing {
	selector := func(what string) (s []wire.LabelMatch) {
		for range rapid.IntRange(0, 2).Draw(t, what) {
			s = append(s, drawCondition(t))
		}
		return s
	}
	p := placing{kind: wire.TaskKind(rapid.IntRange(0, 1).Draw(t, "kind"))}
	p.opts = wire.TaskOptions{
		Func: text.Draw(t, "func"), Process: text.Draw(t, "process"), Isolate: rapid.Bool().Draw(t, "isolate"), Spread: rapid.Bool().Draw(t, "spread"),
		Labels: selector("labels"), PreferLabels: selector("prefer"), Affinity: wire.Affinity(rapid.IntRange(0, int(wire.AffinitySoft)).Draw(t, "affinity")),
	}
	if p.opts.Affinity != wire.AffinityNone {
		p.opts.Node = ids.Home(rapid.IntRange(0, 2).Draw(t, "node"))
	}
	if rapid.Bool().Draw(t, "resources") {
		p.opts.Resources = []wire.Resource{}
		for range rapid.IntRange(0, 2).Draw(t, "resources") {
			p.opts.Resources = append(p.opts.Resources, wire.Resource{Name: text.Draw(t, "resource"), Amount: rapid.Int64Range(0, 2).Draw(t, "amount")})
		}
	}
	return p
}

// changed is p but for one of the options that a class is by.
func (p placing) changed(t *rapid.T) placing {
	o := drawPlacing(t)
	v, from := reflect.ValueOf(&p.opts).Elem(), reflect.ValueOf(&o.opts).Elem()
	names := []string{"Func", "Process", "Isolate", "Spread", "Labels", "PreferLabels", "Resources", "Affinity", "Node"}
	name := rapid.SampledFrom(names).Draw(t, "which")
	v.FieldByName(name).Set(from.FieldByName(name))
	if s := slices.Clone(p.opts.Labels); len(s) > 0 && rapid.Bool().Draw(t, "one condition") {
		m, other := &s[rapid.IntRange(0, len(s)-1).Draw(t, "condition")], drawCondition(t)
		switch rapid.IntRange(0, 2).Draw(t, "what of it") {
		case 0:
			m.Key = other.Key
		case 1:
			m.Op = other.Op
		default:
			m.Values = other.Values
		}
		p.opts.Labels = s
	}
	if p.opts.Affinity == wire.AffinityNone {
		p.opts.Node = 0 // which says nothing then
	}
	return p
}

// Two tasks are of one class if and only if they ask the same: a lease for one of them is good for the other.
func TestClassKeysDifferAsOptionsDo(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		a := drawPlacing(t)
		b := a.changed(t)
		if rapid.Bool().Draw(t, "any other") {
			b = drawPlacing(t)
		}
		same := reflect.DeepEqual(a, b)
		if keys := bytes.Equal(appendClassKey(nil, a.kind, &a.opts), appendClassKey(nil, b.kind, &b.opts)); keys != same {
			t.Fatalf("%+v\nand %+v\nthe same keys: %v, the same options: %v", a, b, keys, same)
		}
	})
}

// However texts and numbers lie beside one another in a key, it reads in one way.
func TestClassKeysReadInOneWay(t *testing.T) {
	m := func(key string, op wire.LabelOp, values ...string) wire.LabelMatch {
		return wire.LabelMatch{Key: key, Op: op, Values: values}
	}
	for _, c := range [][2]wire.TaskOptions{
		{{Labels: []wire.LabelMatch{m("k", 0), m("\x00", 1, "x")}}, {Labels: []wire.LabelMatch{m("k", 0, "\x01"), m("x", 0)}}},
		{{Labels: []wire.LabelMatch{m("k", 2)}}, {PreferLabels: []wire.LabelMatch{m("k", 2)}}},
		{{Process: "ab"}, {Process: "a", Func: "b"}},
		{{Affinity: wire.AffinityHard}, {Affinity: wire.AffinitySoft}},
	} {
		if a, b := appendClassKey(nil, 0, &c[0]), appendClassKey(nil, 0, &c[1]); bytes.Equal(a, b) {
			t.Errorf("%+v and %+v have the key %x", c[0], c[1], a)
		}
	}
}

// What is said only to people, or to the owner alone, makes no class of its own.
func TestClassKeysLeaveOutWhatSchedulersDoNotCareFor(t *testing.T) {
	plain := wire.TaskOptions{Func: "f", Node: 3} // without affinity the node says nothing
	other := wire.TaskOptions{Func: "f", Label: "shown", MaxRetries: 7, NumReturns: 2, Group: "g"}
	if a, b := appendClassKey(nil, 0, &plain), appendClassKey(nil, 0, &other); !bytes.Equal(a, b) {
		t.Errorf("%x and %x", a, b)
	}
}
