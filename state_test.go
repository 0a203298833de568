package mobula

import (
	"reflect"
	"testing"

	"mobula/internal/state"
)

// Rows and queries are types of this package. By name and tag they have the fields that the node sends and takes.
func TestRowsHaveWhatTheNodeSends(t *testing.T) {
	for _, c := range []struct{ ours, nodes any }{
		{NodeStatus{}, state.Status{}}, {Page[TaskState]{}, state.Page[state.Task]{}}, {ActorState{}, state.Actor{}}, {ObjectState{}, state.Object{}},
		{WorkerState{}, state.Worker{}}, {JobState{}, state.Job{}}, {GraphState{}, state.Graph{}}, {NodeState{}, state.Node{}}, {ComponentState{}, state.Component{}},
		{Explanation{}, state.Explanation{}}, {LogStream{}, state.LogStream{}}, {Query{}, state.Query{}},
	} {
		same(t, reflect.TypeOf(c.ours), reflect.TypeOf(c.nodes), map[reflect.Type]bool{})
	}
}

func same(t *testing.T, ours, nodes reflect.Type, met map[reflect.Type]bool) {
	t.Helper()
	if ours.Kind() != nodes.Kind() {
		t.Errorf("%v is %v, the node's %v is %v", ours, ours.Kind(), nodes, nodes.Kind())
		return
	}
	switch ours.Kind() {
	case reflect.Slice, reflect.Pointer:
		same(t, ours.Elem(), nodes.Elem(), met)
	case reflect.Map:
		same(t, ours.Key(), nodes.Key(), met)
		same(t, ours.Elem(), nodes.Elem(), met)
	case reflect.Struct:
		if met[ours] {
			return
		}
		met[ours] = true
		if ours.NumField() != nodes.NumField() {
			t.Errorf("%v has %d fields, the node's %v %d", ours, ours.NumField(), nodes, nodes.NumField())
			return
		}
		for i := range ours.NumField() {
			a, b := ours.Field(i), nodes.Field(i)
			if a.Name != b.Name || a.Tag != b.Tag {
				t.Errorf("%v: field %d is %s %s, the node's %v has %s %s", ours, i, a.Name, a.Tag, nodes, b.Name, b.Tag)
			}
			same(t, a.Type, b.Type, met)
		}
	}
}
