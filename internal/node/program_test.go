package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/raylet/pool"
	"mobula/wire"
)

func python(args ...string) wire.Program {
	return wire.Program{Language: wire.LangPython, Args: args, Single: true, Template: true}
}

func TestProgramsThatCannotBeAreRefused(t *testing.T) {
	own, kernels := python("python3"), wire.Program{Language: wire.LangGo, Args: []string{"/bin/kernels"}}
	for name, c := range map[string]struct {
		own    *wire.Program
		others []wire.Program
		want   string // empty: it is fine
	}{
		"go":              {nil, nil, ""},
		"go with python":  {nil, []wire.Program{own}, ""},
		"python with go":  {&own, []wire.Program{kernels}, ""},
		"no arguments":    {nil, []wire.Program{python()}, "Args is empty"},
		"unknown":         {nil, []wire.Program{{Language: "java", Args: []string{"java"}}}, `"java"`},
		"go twice":        {nil, []wire.Program{kernels}, "two programs"},
		"python twice":    {&own, []wire.Program{own}, "two programs"},
		"no own argument": {&wire.Program{Language: wire.LangPython}, nil, "Args is empty"},
	} {
		err := checkPrograms(c.own, c.others)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, errs.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALanguageFindsItsProgram(t *testing.T) {
	own, kernels := python("python3", "-c"), wire.Program{Language: wire.LangGo, Args: []string{"/bin/kernels", "-q"}}
	progs := &programs{byJob: map[ids.JobID]program{1: {said: &own, others: []wire.Program{kernels}}, 2: {others: []wire.Program{own}}}}
	for _, c := range []struct {
		job      ids.JobID
		language string
		exe      string
		template bool
	}{{1, wire.LangPython, "python3", true}, {1, wire.LangGo, "/bin/kernels", false}, {2, wire.LangPython, "python3", true}, {2, wire.LangGo, "", false}} {
		p, err := progs.executable(c.job, c.language)
		if err != nil || p.Exe != c.exe || p.Template != c.template || c.exe != "" && len(p.Args) != 1 {
			t.Errorf("job %d, %s: %+v, %v", c.job, c.language, p, err)
		}
	}
	single := pool.Program{Language: wire.LangPython, Single: true}
	if got, want := progs.of(1).languages(), []pool.Program{single, {Language: wire.LangGo}}; !reflect.DeepEqual(got, want) {
		t.Errorf("job 1 has %+v", got)
	}
	if got, want := progs.of(2).languages(), []pool.Program{{Language: wire.LangGo}, single}; !reflect.DeepEqual(got, want) {
		t.Errorf("job 2 has %+v", got)
	}
}

// A driver that said what its workers run needs no executable of its own to be there still.
func TestOnlyADriverOfGoHasItsExecutableHeld(t *testing.T) {
	gone, own := filepath.Join(t.TempDir(), "gone"), python("python3")
	p := program{said: &own}
	if err := p.hold(gone); err != nil || p.exe != nil {
		t.Errorf("%v, %v", p.exe, err)
	}
	if err := new(program).hold(gone); !errors.Is(err, errs.ErrRuntimeSetup) {
		t.Errorf("of an executable that is gone: %v", err)
	}
	var q program
	if err := q.hold(os.Args[0]); err != nil || q.exe == nil {
		t.Fatal(err)
	}
	q.close()
}
