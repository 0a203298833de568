package call

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mobula/internal/labels"
	"mobula/wire"
)

// joinTexts makes a map of texts comparable; splitTexts gives keys and texts in turn.
func joinTexts(m map[string]string) (out string) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out += strconv.Quote(key) + strconv.Quote(m[key])
	}
	return out
}

func splitTexts(s string) (all []string) {
	for s != "" {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return all
		}
		text, _ := strconv.Unquote(quoted)
		all, s = append(all, text), s[len(quoted):]
	}
	return all
}

// selector reads what joinTexts made of conditions on labels.
func selector(joined string) (wire.Selector, error) {
	var s wire.Selector
	for pair := range slices.Chunk(splitTexts(joined), 2) {
		m, err := parseMatch(pair[0], pair[1])
		if err != nil {
			return nil, err
		}
		s = append(s, m)
	}
	return s, nil
}

const wantMatch = `want "a", "!a", "in(a, b)", "!in(a, b)", "exists()" or "!exists()"`

// parseMatch reads a condition on one label, in Ray's syntax, to which exists() is added. The values are in order, each once.
func parseMatch(key, text string) (m wire.LabelMatch, err error) {
	if err := labels.CheckKey(key); err != nil {
		return m, err
	}
	m.Key = key
	cond, not := strings.CutPrefix(strings.TrimSpace(text), "!")
	cond = strings.TrimSpace(cond)
	name, inside, call := strings.Cut(cond, "(")
	inside, closed := strings.CutSuffix(inside, ")")
	switch {
	case !call:
		m.Values = []string{cond}
	case !closed || name != "in" && name != "exists":
		return m, fmt.Errorf("%q of label %q is no condition; %s", text, key, wantMatch)
	case name == "exists" && strings.TrimSpace(inside) != "":
		return m, fmt.Errorf("%q of label %q: exists takes no values; %s", text, key, wantMatch)
	case name == "in":
		for v := range strings.SplitSeq(inside, ",") {
			m.Values = append(m.Values, strings.TrimSpace(v))
		}
	}
	switch {
	case call && name == "exists":
		m.Op = wire.LabelExists
		if not {
			m.Op = wire.LabelAbsent
		}
		return m, nil
	case not:
		m.Op = wire.LabelNotIn
	}
	for _, v := range m.Values {
		if err := labels.CheckValue(v); err != nil {
			return m, fmt.Errorf("%q of label %q: %w; %s", text, key, err, wantMatch)
		}
	}
	slices.Sort(m.Values)
	m.Values = slices.Compact(m.Values)
	return m, nil
}
