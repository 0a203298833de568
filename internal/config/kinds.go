package config

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"mobula/internal/labels"
)

// table collects settings; each method adds one of a kind and sets its default.
type table []setting

func (t *table) add(s Setting, set func(v any) error, show func() string) {
	*t = append(*t, setting{s, set, show})
}

// scalar adds a setting that is read from one piece of text.
func scalar[T any](t *table, p *T, s Setting, def T, parse func(string) (T, error), show func(T) string) {
	*p = def
	t.add(s, func(v any) error {
		text, err := asText(v)
		if err != nil {
			return err
		}
		x, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		*p = x
		return nil
	}, func() string { return show(*p) })
}

func (t *table) text(p *string, key, def, words, doc string) {
	scalar(t, p, named(key, "text", either(words, def), doc), def,
		func(s string) (string, error) { return s, nil }, func(s string) string { return s })
}

func (t *table) number(p *float64, key, words, doc string, check func(float64) error) {
	scalar(t, p, named(key, "number", words, doc), 0, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || v != v || v-v != 0 {
			return 0, fmt.Errorf("not a number; give one such as 4 or 0.5")
		}
		return v, check(v)
	}, func(v float64) string {
		if v == 0 && words != "0" { // not set: the node fills it in
			return ""
		}
		return showNumber(v)
	})
}

// cpus is a number that may be 0 (NoCPUs), which is not the same as to be left out.
func (t *table) cpus(p *float64, key, words, doc string) {
	scalar(t, p, named(key, "number", words, doc), 0, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil || v != v || v-v != 0:
			return 0, fmt.Errorf("not a number; give one such as 4 or 0.5")
		case v == 0:
			return NoCPUs, nil
		}
		return v, someCPU(v)
	}, func(v float64) string {
		switch v {
		case 0:
			return ""
		case NoCPUs:
			return "0"
		}
		return showNumber(v)
	})
}

func (t *table) fraction(p *float64, key string, def float64, doc string) {
	t.ratio(p, key, def, doc, func(v float64) bool { return v > 0 && v <= 1 }, "a fraction above 0 and up to 1")
}

// share is a fraction that may be 0.
func (t *table) share(p *float64, key string, def float64, doc string) {
	t.ratio(p, key, def, doc, func(v float64) bool { return v >= 0 && v <= 1 }, "a fraction from 0 to 1")
}

func (t *table) ratio(p *float64, key string, def float64, doc string, ok func(float64) bool, want string) {
	scalar(t, p, named(key, "fraction", showNumber(def), doc), def, func(s string) (float64, error) {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !ok(v) {
			return 0, fmt.Errorf("want %s, such as 0.5", want)
		}
		return v, nil
	}, showNumber)
}

func (t *table) count(p *int, key string, def int, doc string, least, most int) {
	scalar(t, p, named(key, "count", strconv.Itoa(def), doc), def, func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil || v < least || v > most {
			return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
		}
		return v, nil
	}, strconv.Itoa)
}

// port is one that follows from the node's own unless it is set.
func (t *table) port(p *int, key string, plus int, doc string) {
	words := fmt.Sprintf("that of listen plus %d", plus)
	scalar(t, p, named(key, "port", words, doc), 0, func(s string) (int, error) {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 || v > 65535 {
			return 0, fmt.Errorf("want a port from 1 to 65535")
		}
		return v, nil
	}, func(v int) string {
		if v == 0 {
			return "" // the node knows
		}
		return strconv.Itoa(v)
	})
}

func (t *table) flag(p *bool, key, doc string) {
	scalar(t, p, named(key, "bool", "false", doc), false, func(s string) (bool, error) {
		switch strings.ToLower(s) {
		case "yes", "on":
			return true, nil
		case "no", "off":
			return false, nil
		}
		v, err := strconv.ParseBool(s)
		if err != nil {
			return false, fmt.Errorf("want true or false")
		}
		return v, nil
	}, strconv.FormatBool)
}

func (t *table) size(p *Bytes, key string, def Bytes, words, doc string, check func(Bytes) error) {
	scalar(t, p, named(key, "size", either(words, def.String()), doc), def, func(s string) (Bytes, error) {
		v, err := ParseBytes(s)
		if err == nil && check != nil {
			err = check(v)
		}
		return v, err
	}, func(b Bytes) string {
		if b == 0 && words != "" {
			return "" // the node fills it in when it runs
		}
		return b.String()
	})
}

func (t *table) duration(p *time.Duration, key string, def time.Duration, doc string) {
	scalar(t, p, named(key, "duration", def.String(), doc), def, func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil {
			return 0, fmt.Errorf("not a duration; give a number with a unit such as 30s or 500ms")
		}
		if v <= 0 {
			return 0, fmt.Errorf("want more than 0")
		}
		return v, nil
	}, time.Duration.String)
}

// patience is a duration that may be 0: not at all.
func (t *table) patience(p *time.Duration, key, doc string) {
	scalar(t, p, named(key, "duration", "0s", doc), 0, func(s string) (time.Duration, error) {
		v, err := time.ParseDuration(s)
		if err != nil || v < 0 {
			return 0, fmt.Errorf("want 0, or a number with a unit such as 30s or 10m")
		}
		return v, nil
	}, time.Duration.String)
}

func (t *table) choice(p *string, key, def, doc string, of ...string) {
	scalar(t, p, named(key, strings.Join(of, "|"), def, doc), def, func(s string) (string, error) {
		if v := strings.ToLower(s); slices.Contains(of, v) {
			return v, nil
		}
		return "", fmt.Errorf("want one of %s", strings.Join(of, ", "))
	}, func(s string) string { return s })
}

// oneOf is a choice without a static default.
func (t *table) oneOf(p *string, key, words, doc string, of ...string) {
	t.choice(p, key, "", doc, of...)
	s := &(*t)[len(*t)-1]
	s.Default = words
}

// loopback is an address that only this machine's users can reach: the server there has neither authentication nor
// TLS.
func (t *table) loopback(p *string, key, doc string) {
	scalar(t, p, named(key, "host:port", "off", doc), "", func(s string) (string, error) {
		if s == "" || s == "off" {
			return "", nil
		}
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			return "", fmt.Errorf("not an address; give host:port such as 127.0.0.1:9464")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", fmt.Errorf("port %q; want 0 to 65535", port)
		} else if host == "localhost" {
			return net.JoinHostPort("127.0.0.1", strconv.FormatUint(n, 10)), nil
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
			return "", fmt.Errorf("only loopback addresses are served, as it has no authentication; give 127.0.0.1:%s", port)
		}
		return s, nil
	}, func(s string) string { return either(s, "off") })
}

func (t *table) list(p *[]string, key, words, doc string) {
	t.add(named(key, "list", words, doc), func(v any) error {
		var out []string
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				s, err := asText(e)
				if err != nil {
					return err
				}
				out = append(out, s)
			}
		default:
			s, err := asText(v)
			if err != nil {
				return fmt.Errorf("want a list, or text with commas between the elements: %w", err)
			}
			out = splitList(s)
		}
		if i := slices.Index(out, ""); i >= 0 {
			return fmt.Errorf("element %d is empty", i+1)
		}
		*p = out
		return nil
	}, func() string { return strings.Join(*p, ",") })
}

// embedded is the value of servers that names none.
const embedded = "embedded"

// servers are NATS servers by URL, all of one set.
func (t *table) servers(p *[]string, key, doc string) {
	var all []string
	t.list(&all, key, embedded, doc)
	s := &(*t)[len(*t)-1]
	s.Kind = embedded + "|url,..."
	list := s.set
	s.set = func(v any) error {
		if err := list(v); err != nil {
			return err
		}
		if len(all) == 1 && strings.EqualFold(all[0], embedded) {
			all = nil
		}
		for _, a := range all {
			u, err := url.Parse(a)
			if err != nil || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) || u.Host == "" {
				return fmt.Errorf("%q: want %s alone, or URLs of NATS servers such as nats://host:4222", hidden(a), embedded)
			}
		}
		*p = all
		return nil
	}
	s.show = func() string {
		out := make([]string, len(*p))
		for i, a := range *p {
			out[i] = hidden(a)
		}
		return either(strings.Join(out, ","), embedded)
	}
}

// hidden is a URL without its password.
func hidden(s string) string {
	if u, err := url.Parse(s); err == nil {
		return u.Redacted()
	}
	if _, host, ok := strings.Cut(s, "@"); ok {
		return host
	}
	return s
}

// pairs reads a map of the file, or text such as a=1,b=2; kind is what an element looks like.
func pairs(v any, kind string) (map[string]string, error) {
	out := make(map[string]string)
	if m, ok := v.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			text, err := asText(m[name])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", name, err)
			}
			out[name] = text
		}
		return out, nil
	}
	s, err := asText(v)
	if err != nil {
		return nil, fmt.Errorf("want a map, or text such as %s,...: %w", kind, err)
	}
	for _, e := range splitList(s) {
		name, text, ok := strings.Cut(e, "=")
		if !ok {
			return nil, fmt.Errorf("%q: want %s", e, kind)
		}
		name = strings.TrimSpace(name)
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		out[name] = strings.TrimSpace(text)
	}
	return out, nil
}

func (t *table) labels(p *map[string]string, key, doc string) {
	const kind = "key=value"
	t.add(named(key, kind, "none", doc), func(v any) error {
		out, err := pairs(v, kind)
		if err == nil {
			err = labels.Check(out)
		}
		if err == nil {
			*p = out
		}
		return err
	}, func() string { return labels.String(*p) })
}

func (t *table) amounts(p *map[string]float64, key, doc string) {
	const kind = "name=amount"
	t.add(named(key, kind, "none", doc), func(v any) error {
		said, err := pairs(v, kind)
		if err != nil {
			return err
		}
		out := make(map[string]float64, len(said))
		for _, name := range slices.Sorted(maps.Keys(said)) {
			text := said[name]
			n, err := strconv.ParseFloat(text, 64)
			if err != nil || n < 0 || n-n != 0 {
				return fmt.Errorf("resource %q: amount %q: want a number, 0 or more", name, text)
			}
			if name == "" {
				return fmt.Errorf("an amount of %q has no resource's name before it", text)
			}
			if n == 0 && strings.EqualFold(name, "CPU") {
				return fmt.Errorf("resource %q: %w", name, someCPU(n))
			}
			out[name] = n
		}
		*p = out
		return nil
	}, func() string {
		var out []string
		for _, name := range slices.Sorted(maps.Keys(*p)) {
			out = append(out, name+"="+showNumber((*p)[name]))
		}
		return strings.Join(out, ",")
	})
}

func splitList(s string) []string {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	out := strings.Split(s, ",")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// asText is a scalar of YAML as it would be written.
func asText(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case uint64:
		return strconv.FormatUint(v, 10), nil
	case float64:
		return showNumber(v), nil
	}
	return "", fmt.Errorf("%v is no single value", v)
}

func showNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// ParseBytes reads what String prints, and every other common way to write a size.
func ParseBytes(s string) (Bytes, error) {
	v, err := humanize.ParseBytes(s)
	if err != nil || strings.HasPrefix(strings.TrimSpace(s), "-") {
		return 0, fmt.Errorf("not a size; give a number with a unit such as 512MiB or 2GB")
	}
	return Bytes(v), nil
}

// String is exact: the largest binary or decimal unit that divides the amount.
func (b Bytes) String() string {
	if b == 0 {
		return "0"
	}
	for _, u := range []struct {
		size Bytes
		name string
	}{{1 << 40, "TiB"}, {1e12, "TB"}, {1 << 30, "GiB"}, {1e9, "GB"}, {1 << 20, "MiB"}, {1e6, "MB"}, {1 << 10, "KiB"}, {1e3, "kB"}} {
		if b%u.size == 0 {
			return strconv.FormatUint(uint64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatUint(uint64(b), 10) + "B"
}
