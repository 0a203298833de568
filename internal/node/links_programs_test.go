package node

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/raylet/internode"
	"mobula/wire"
)

// The Go program that a Python driver calls is what workers here run, also if it has come before the driver's own modules.
func TestAProgramMayComeBeforeTheDriversOwn(t *testing.T) {
	said := &internode.OpenJob{
		Program: &wire.Program{Language: wire.LangPython, Args: []string{"python3"}},
		Others:  []wire.Program{{Language: wire.LangGo, Args: []string{"/of/the/driver/alone"}}},
	}
	exe, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	l := &links{base: &base{}, programs: &programs{}}
	a := &agent{job: 7, said: said, gate: newProgramGate([]string{wire.LangPython, wire.LangGo})}
	for _, language := range []string{wire.LangGo, wire.LangPython} {
		got := arrival{exe: exe}
		if language == wire.LangPython {
			got = arrival{modules: "{}"}
		}
		if own := l.place(a, language, got); own != (language == wire.LangPython) {
			t.Errorf("%s is the driver's own: %v", language, own)
		}
		a.gate.arrived(language)
	}
	runs, err := l.programs.executable(7, wire.LangGo)
	if err != nil || runs.File == nil || runs.File.Name() != exe.Name() {
		t.Fatalf("workers run %+v, %v; want the file that came", runs, err)
	}
	_ = runs.File.Close() // only ever read
	l.programs.drop(7)
}

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
