package events

import (
	"strings"
	"unicode/utf8"

	"mobula/internal/errs"
)

// reasonMost bounds each text of a Reason.
const reasonMost = 512

// brief gives what an event keeps of an error: code, message and name, neither longer than reasonMost. The rest of an error may be as
// large as a message between processes, and an event outlives its task by 100,000 events.
func brief(e *errs.Error) *errs.Error {
	if e == nil {
		return nil
	}
	return &errs.Error{Code: e.Code, Msg: cut(e.Msg), Name: cut(e.Name)}
}

// cut copies what it keeps of a long text, so that the rest is freed.
func cut(s string) string {
	const end = "..."
	if len(s) <= reasonMost {
		return s
	}
	n := reasonMost - len(end)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n]) + end
}
