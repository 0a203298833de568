package labels

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Domain is that of the labels which every node has.
const Domain = "mobula.io"

// The labels that every node has.
const (
	NodeID = Domain + "/node-id" // its home
	OS     = Domain + "/os"      // as Go names it: "linux"
	Arch   = Domain + "/arch"    // as Go names it: "amd64"
)

const (
	maxName   = 63
	maxDomain = 253
)

// Check tells what is wrong with labels that a user gives a node.
func Check(m map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := CheckKey(key); err != nil {
			return err
		}
		if Reserved(key) {
			return fmt.Errorf("label %q: the labels of %s are the runtime's own; give it another name", key, Domain)
		}
		if err := CheckValue(m[key]); err != nil {
			return fmt.Errorf("label %q: %w", key, err)
		}
	}
	return nil
}

// Reserved tells whether a key is the runtime's own.
func Reserved(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	return ok && (domain == Domain || strings.HasSuffix(domain, "."+Domain))
}

// CheckKey tells what is wrong with a label's key.
func CheckKey(key string) error {
	name := key
	if domain, rest, ok := strings.Cut(key, "/"); ok {
		if name = rest; !isDomain(domain) {
			return fmt.Errorf("label %q: %q is no domain; want one such as example.com before the slash, in small letters", key, domain)
		}
	}
	if !isName(name) {
		return fmt.Errorf("label %q: %q is no name; want %s", key, name, wantName)
	}
	return nil
}

// CheckValue tells what is wrong with a label's value.
func CheckValue(value string) error {
	if !isName(value) {
		return fmt.Errorf("the value %q; want %s", value, wantName)
	}
	return nil
}

var wantName = fmt.Sprintf("1 to %d letters, digits, dots, dashes and underscores, with a letter or digit at either end", maxName)

func isName(s string) bool {
	if s == "" || len(s) > maxName || !alphanumeric(s[0]) || !alphanumeric(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !alphanumeric(c) && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isDomain(s string) bool {
	if len(s) > maxDomain {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isName(part) || strings.Contains(part, "_") || strings.ToLower(part) != part {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// String is labels as users write them: "rack=3,zone=a".
func String(m map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, key+"="+m[key])
	}
	return strings.Join(out, ",")
}
