package cluster

import (
	"errors"
	"testing"

	"mobula/internal/errs"
	"mobula/raylet/sched"
	"mobula/wire"
)

// A shape is what the options on the wire say, by the rules of a node's scheduler.
func TestShapeOf(t *testing.T) {
	half := []wire.Resource{{Name: "CPU", Amount: 500}, {Name: "GPU"}, {Name: "memory", Amount: 1 << 20}}
	zone, ssd := []wire.LabelMatch{{Key: "zone", Values: []string{"a", "b"}}}, []wire.LabelMatch{{Key: "ssd", Op: wire.LabelExists}}
	for _, c := range []struct {
		opts *wire.TaskOptions
		kind wire.TaskKind
		want string
	}{
		{nil, wire.TaskNormal, "CPU 1"},
		{&wire.TaskOptions{Resources: half}, wire.TaskNormal, "CPU 0.5, memory 1048576 B"},
		{&wire.TaskOptions{Resources: []wire.Resource{{Name: "tpu", Amount: 1000}}, Spread: true}, wire.TaskNormal, "CPU 1, tpu 1, spread"},
		{&wire.TaskOptions{Resources: []wire.Resource{{Name: "CPU"}}}, wire.TaskNormal, "no resources"},
		{&wire.TaskOptions{}, wire.TaskActorCreate, "CPU 1"},
		{&wire.TaskOptions{Labels: zone, PreferLabels: ssd, Affinity: wire.AffinityHard, Node: 7}, wire.TaskNormal, "CPU 1, on nodes where zone in (a, b), rather where ssd exists, on node 7"},
		{&wire.TaskOptions{Affinity: wire.AffinitySoft}, wire.TaskActorCreate, "CPU 1, rather on node 0"},
		{&wire.TaskOptions{Node: 7}, wire.TaskNormal, "CPU 1"},
	} {
		s, err := ShapeOf(c.opts, c.kind)
		if err != nil || s.Validate() != nil || s.String() != c.want {
			t.Errorf("%+v is %q, %v, want %q", c.opts, s, err, c.want)
		}
	}
	for _, opts := range []wire.TaskOptions{
		{Resources: []wire.Resource{{Name: "GPU", Amount: -1}}}, {Labels: []wire.LabelMatch{{Key: "zone"}}}, {PreferLabels: []wire.LabelMatch{{Op: wire.LabelExists}}},
		{Spread: true, Affinity: wire.AffinitySoft},
	} {
		if _, err := ShapeOf(&opts, wire.TaskNormal); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

func TestShapesAreValidated(t *testing.T) {
	one := wire.Resource{Name: sched.CPU, Amount: 1000}
	for _, s := range []Shape{
		{Need: []wire.Resource{one, one}},
		{Need: []wire.Resource{{Name: "b", Amount: 1}, {Name: "a", Amount: 1}}},
		{Need: []wire.Resource{{Name: "a"}}},
		{Labels: wire.Selector{{Key: "zone"}}},
		{Prefer: wire.Selector{{Op: wire.LabelExists}}},
		{Prefer: wire.Selector{{Key: "zone", Op: wire.LabelAbsent, Values: []string{"a"}}}},
		{Labels: wire.Selector{{Key: "zone", Op: 9}}},
		{Strategy: Strategy{Kind: 9}},
		{Strategy: Strategy{Kind: Spread, Soft: true}},
	} {
		if err := s.Validate(); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	if err := (Config{SpreadThreshold: 2, TopKFraction: -1, HotStore: 3}).Validate(); err == nil {
		t.Error("nothing is wrong")
	}
}
