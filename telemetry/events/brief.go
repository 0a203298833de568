package events

import (
	"strings"
	"unicode/utf8"

	"mobula/internal/errs"
	"mobula/wire"
)

// textMost bounds each text of a Reason, and of long options.
const textMost = 512

// brief gives what an event keeps of an error: code, message and name, neither longer than textMost. The rest of an error may be as
// large as a message between processes, and an event outlives its task by 100,000 events.
func brief(e *errs.Error) *errs.Error {
	if e == nil {
		return nil
	}
	return &errs.Error{Code: e.Code, Msg: cut(e.Msg), Name: cut(e.Name)}
}

// briefOptions gives what an event keeps of a task's options: long ones are not shared by many events, which need what is shown alone.
func briefOptions(o *wire.TaskOptions) *wire.TaskOptions {
	if !o.Long() {
		return o
	}
	return &wire.TaskOptions{Func: cut(o.Func), Label: cut(o.Label)}
}

// cut copies what it keeps of a long text, so that the rest is freed.
func cut(s string) string {
	const end = "..."
	if len(s) <= textMost {
		return s
	}
	n := textMost - len(end)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + end
}
