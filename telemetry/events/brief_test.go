package events

import (
	"strings"
	"testing"
	"unicode/utf8"

	"mobula/internal/errs"
	"mobula/raylet/owner"
	"mobula/raylet/owner/task"
	"mobula/wire"
)

// An event outlives its task, so of the task's error it keeps what is shown, up to a bound.
func TestAnEventKeepsLittleOfAnError(t *testing.T) {
	r := New(Config{Rate: 1e9})
	short, long := "disk full", strings.Repeat("ä", 50_000)
	for _, msg := range []string{short, long, "x" + long} {
		e := errs.New(errs.CodePython, "%s", msg)
		e.Name, e.Stack, e.Data, e.Cause = "builtins.ValueError", long, []byte(long), []*errs.Error{errs.New(errs.CodeTaskFailed, "%s", long)}
		r.Record([]owner.Transition{{Spec: spec(1), State: task.Failed, Reason: e}})
	}
	evs, _, _ := all(r, 0)
	for i, ev := range evs {
		e := ev.Reason
		if e.Code != errs.CodePython || e.Name != "builtins.ValueError" || e.Stack != "" || e.Data != nil || e.Cause != nil {
			t.Errorf("event %d has %+v", i, e)
		}
		if len(e.Msg) > textMost || i > 0 && len(e.Msg) < textMost-utf8.UTFMax || !utf8.ValidString(e.Msg) {
			t.Errorf("event %d has a message of %d bytes, which ends with %q", i, len(e.Msg), e.Msg[max(0, len(e.Msg)-8):])
		}
	}
	if len(evs) != 3 || evs[0].Reason.Msg != short || !strings.HasSuffix(evs[1].Reason.Msg, "ä...") {
		t.Errorf("%d events, the first of %q", len(evs), evs[0].Reason.Msg)
	}
}

// So it is with a task's options, which may be long and its own.
func TestAnEventKeepsLittleOfLongOptions(t *testing.T) {
	r := New(Config{Rate: 1e9})
	long := strings.Repeat("ä", 50_000)
	for _, o := range []*wire.TaskOptions{opts, {Func: "f", Label: long}, {Func: long}, {Func: "f", ActorName: long}, {Func: "f", Labels: []wire.LabelMatch{{Values: []string{long}}}}} {
		s := spec(1)
		s.Opts = o
		r.Record([]owner.Transition{{Spec: s, State: task.Finished}})
	}
	evs, _, _ := all(r, 0)
	if len(evs) != 5 || evs[0].Opts != opts {
		t.Fatalf("%d events, the first with %+v", len(evs), evs[0].Opts)
	}
	for i, e := range evs[1:] {
		if o := e.Opts; o.Long() || o.Func == "" || i == 0 && !strings.HasPrefix(o.Label, "ä") {
			t.Errorf("event %d keeps %+v", i+1, o)
		}
	}
}
