package labels

import (
	"strings"
	"testing"
)

func TestKeysAndValues(t *testing.T) {
	long := strings.Repeat("x", maxName)
	for _, key := range []string{"zone", "Zone-1.a_b", "9", long, "example.com/zone", "a/b", strings.Repeat("a.", 126) + "a/zone"} {
		if err := CheckKey(key); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for key, want := range map[string]string{
		"": "1 to 63", long + "x": "1 to 63", "-a": "either end", "a.": "either end", "zone ": "either end", "zöne": "letters", "a b": "letters", "a=b": "letters",
		"/a": "no domain", "a/": "1 to 63", "a/b/c": "letters", "Example.com/a": "small letters", "a_b/c": "no domain", "a..b/c": "no domain",
		strings.Repeat("a.", 127) + "a/zone": "no domain",
	} {
		if err := CheckKey(key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("key %q: %v, want %q in it", key, err, want)
		}
	}
	for _, value := range []string{"a", "us-west_1.b", long} {
		if err := CheckValue(value); err != nil {
			t.Errorf("value %q: %v", value, err)
		}
	}
	for _, value := range []string{"", long + "x", "a,b", "in(a)", "!a", "a/b", "a "} {
		if err := CheckValue(value); err == nil {
			t.Errorf("value %q is accepted", value)
		}
	}
}

func TestLabelsThatANodeIsGiven(t *testing.T) {
	if err := Check(map[string]string{"zone": "a", "example.com/rack": "3", "notmobula.io/x": "1"}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"mobula.io/os", "plan9", "the runtime's own"},
		{"sub.mobula.io/x", "1", "the runtime's own"},
		{"zone", "", `label "zone": the value ""`},
		{"a b", "1", "is no name"},
	} {
		if err := Check(map[string]string{c.key: c.value}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q in it", c.key, c.value, err, c.want)
		}
	}
	if got := String(map[string]string{"zone": "a", "rack": "3"}); got != "rack=3,zone=a" {
		t.Errorf("they are shown as %q", got)
	}
}
