package run

import (
	"reflect"
	"testing"

	"mobula/wire"
)

// Each option bounds its own kind of failure: errors, or deaths of workers.
func TestRetriesOfANote(t *testing.T) {
	type counts struct {
		deaths, errors int32
		retried        bool
	}
	for i, x := range []struct {
		note *Note
		want counts
	}{
		{nil, counts{2, 0, false}},
		{&Note{}, counts{2, 0, false}},
		{&Note{Retries: 1}, counts{2, 1, true}},
		{&Note{Retries: 9}, counts{2, 9, true}},
		{&Note{Errors: true}, counts{2, defaultRetries, true}},
		{&Note{Errors: true, Failures: 2}, counts{1, 0, true}},
		{&Note{Errors: true, Failures: 1}, counts{0, 0, true}},
		{&Note{Errors: true, Failures: -1}, counts{-1, 0, true}},
		{&Note{Errors: true, Failures: 2, Retries: 5}, counts{1, 5, true}},
		{&Note{Failures: 6}, counts{5, 0, false}},
	} {
		o := x.note.Options("f", "", 3)
		if got := (counts{o.MaxRetries, o.ExceptionRetries, o.RetryExceptions}); got != x.want {
			t.Errorf("%d: %+v gives %+v, want %+v", i, x.note, got, x.want)
		}
	}
}

func TestDeadlineOfANote(t *testing.T) {
	const now = 5_000_000_000
	for n, want := range map[*Note]int64{nil: 0, {}: 0, {Timeout: 3}: now + 3} {
		if got := n.Deadline(now); got != want {
			t.Errorf("%+v: %d, want %d", n, got, want)
		}
	}
}

// What a note says of nodes is asked for with each of its tasks; what nobody can mean is refused before any of them runs.
func TestNodesOfANote(t *testing.T) {
	n := &Note{Labels: []wire.LabelMatch{{Key: "zone", Values: []string{"a"}}}, Prefer: []wire.LabelMatch{{Key: "ssd", Op: wire.LabelExists}}, Affinity: wire.AffinitySoft, Node: 7}
	o := n.Options("f", "", 3)
	if !reflect.DeepEqual(o.Labels, n.Labels) || !reflect.DeepEqual(o.PreferLabels, n.Prefer) || o.Affinity != n.Affinity || o.Node != n.Node {
		t.Errorf("%+v gives %+v", n, o)
	}
	if err := n.check(); err != nil {
		t.Error(err)
	}
	for _, n := range []Note{{Labels: []wire.LabelMatch{{Key: "zone", Op: 4}}}, {Prefer: []wire.LabelMatch{{Key: "zone", Op: 9}}}, {Affinity: 3}, {Affinity: 1, Node: 1 << 31}} {
		if n.check() == nil {
			t.Errorf("%+v is taken", n)
		}
	}
}
