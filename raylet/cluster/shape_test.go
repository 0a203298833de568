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
	} {
		s, err := ShapeOf(c.opts, c.kind)
		if err != nil || s.Validate() != nil || s.String() != c.want {
			t.Errorf("%+v is %q, %v, want %q", c.opts, s, err, c.want)
		}
	}
	if _, err := ShapeOf(&wire.TaskOptions{Resources: []wire.Resource{{Name: "GPU", Amount: -1}}}, wire.TaskNormal); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a negative amount: %v", err)
	}
}

func TestShapesAreValidated(t *testing.T) {
	one := wire.Resource{Name: sched.CPU, Amount: 1000}
	for _, s := range []Shape{
		{Need: []wire.Resource{one, one}},
		{Need: []wire.Resource{{Name: "b", Amount: 1}, {Name: "a", Amount: 1}}},
		{Need: []wire.Resource{{Name: "a"}}},
		{Labels: Selector{{Key: "zone"}}},
		{Prefer: Selector{{Op: Exists}}},
		{Prefer: Selector{{Key: "zone", Op: Absent, Values: []string{"a"}}}},
		{Labels: Selector{{Key: "zone", Op: 9}}},
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
	if err := (Config{SpreadThreshold: 2, TopKFraction: -1, HotStore: 3, MaxSpillbacks: -1}).Validate(); err == nil {
		t.Error("nothing is wrong")
	}
}
