package main

import (
	"strings"
	"testing"

	"mobula/internal/state"
)

// What is shown of a log that grows is what was added, under the name of its stream where that changes.
func TestALogIsFollowed(t *testing.T) {
	out := func(text string, size int64) state.LogStream {
		return state.LogStream{Worker: "worker/2-1", Stream: "out", Path: "/l", Node: "n2", Text: text, Size: size}
	}
	other := state.LogStream{Worker: "worker/2-1", Stream: "err", Path: "/e", Node: "n2", Text: "e\n", Size: 2}
	f := newFollowed()
	for i, c := range []struct {
		streams []state.LogStream
		want    string
	}{
		{[]state.LogStream{out("a\n", 2)}, "== worker/2-1 out /l on node n2\na\n"},
		{[]state.LogStream{out("a\n", 2)}, ""},
		{[]state.LogStream{out("a\na\n", 4)}, "a\n"},
		{[]state.LogStream{out("a\na\nb", 5), other}, "b\n== worker/2-1 err /e on node n2\ne\n"},
		{[]state.LogStream{out("\nbc\n", 8), other}, "== worker/2-1 out /l on node n2\nbc\n"},
		{[]state.LogStream{out("xyz\n", 100), other}, "== 88 B before this are left out\nxyz\n"},
		{[]state.LogStream{out("xyz\n", 40), other}, ""}, // older parts were removed
		{[]state.LogStream{out("xyz\n\x1b[2J", 44), other}, "?[2J"},
	} {
		var w strings.Builder
		f.text(&w, f.more(c.streams))
		if got := w.String(); got != c.want {
			t.Errorf("step %d: %q, want %q", i, got, c.want)
		}
	}
	gone := []state.Unreachable{{Node: "n3", Why: "no answer within 5s"}}
	for i, want := range []int{1, 0, 0, 1} {
		if i == 2 {
			f.lacks(nil)
			continue
		}
		if got := f.lacks(gone); len(got) != want {
			t.Errorf("warning %d: %+v", i, got)
		}
	}
}

func TestFollowNeedsALog(t *testing.T) {
	if code, _, errOut := command(t, nil, "logs", "--follow"); code != exitUsage || !strings.Contains(errOut, "mobula logs lists") {
		t.Errorf("exit %d, %s", code, errOut)
	}
}
