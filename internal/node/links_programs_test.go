package node

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/raylet/internode"
	"mobula/wire"
)

// What this node cannot run is named, with what it is and what the node is.
func TestWhatANodeCannotRunIsNamed(t *testing.T) {
	l := &links{base: &base{cfg: Config{Name: "n2"}}}
	for name, c := range map[string]struct {
		said     internode.OpenJob
		language string
		kind     error
		words    []string
	}{
		"architecture":     {internode.OpenJob{OS: runtime.GOOS, Arch: "s390x"}, wire.LangGo, errs.ErrUnschedulable, []string{"s390x", runtime.GOARCH, "n2"}},
		"operating system": {internode.OpenJob{OS: "plan9", Arch: runtime.GOARCH}, wire.LangGo, errs.ErrUnschedulable, []string{"plan9", runtime.GOOS}},
		"no interpreter": {
			internode.OpenJob{Program: &wire.Program{Language: wire.LangPython, Version: "3.99", Args: []string{"/opt/none/python3"}}}, wire.LangPython, errs.ErrRuntimeSetup,
			[]string{"3.99", "/opt/none/python3"},
		},
	} {
		_, err := l.bring(&agent{job: 7, said: &c.said}, c.language)
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, err, w)
			}
		}
	}
}
