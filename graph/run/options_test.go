package run

import (
	"testing"
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
