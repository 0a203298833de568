package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/release"
	"mobula/wire"
)

// interpreter makes an executable that stands for Python, and prints what it is asked to; it gives its directory.
func interpreter(t *testing.T, prints string) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -c ] || exit 9\ncat <<'END'\n%s\nEND\n", prints)
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func about(version string) string {
	return fmt.Sprintf(`{"executable": "/usr/bin/python3.11", "version": "3.11", "mobula": %q, "numpy": true}`, version)
}

func TestThePythonThatHasThePackageIsFound(t *testing.T) {
	without := interpreter(t, `{"executable": "/bin/python3.12", "version": "3.12", "why": "No module named 'mobula'"}`)
	old, with := interpreter(t, about("0.1.9")), interpreter(t, about(release.Version+".dev0"))
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv(EnvPython, "")
	t.Setenv("PATH", strings.Join([]string{"/nowhere", without, old, with, os.Getenv("PATH")}, ":"))
	p, err := Python{Path: []string{"lib"}, Preload: []string{"app"}}.Program(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if p.Language != wire.LangPython || p.Version != "3.11" || !p.Single || !p.Template || p.Args[0] != "/usr/bin/python3.11" || len(p.Args) != 4 {
		t.Fatalf("%+v", p)
	}
	var config struct {
		Path, Preload []string
		Version, Cwd  string
	}
	if err := json.Unmarshal([]byte(p.Args[3]), &config); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(config.Path, []string{filepath.Join(cwd, "lib")}) || !slices.Equal(config.Preload, []string{"numpy", "app"}) || config.Version != "3.11" || config.Cwd != cwd {
		t.Errorf("%+v", config)
	}
	t.Setenv(EnvPython, filepath.Join(old, "python3"))
	if _, err := (Python{}).Program(t.Context()); err == nil || !strings.Contains(err.Error(), "0.1.9") {
		t.Errorf("the one that the environment names is not asked, or not alone: %v", err)
	}
	if _, err := (Python{Interpreter: filepath.Join(with, "python3")}).Program(t.Context()); err != nil {
		t.Errorf("the one that the driver names is not asked: %v", err)
	}
}

func TestWhyThereIsNoPython(t *testing.T) {
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv(EnvPython, "")
	ctx := t.Context()
	for name, c := range map[string]struct {
		python Python
		want   []string
	}{
		"without the package": {Python{Interpreter: filepath.Join(interpreter(t, `{"version": "3.12", "why": "No module named 'mobula'"}`), "python3")}, []string{"Python 3.12", "No module named", release.Version}},
		"of another release":  {Python{Interpreter: filepath.Join(interpreter(t, about("9.9")), "python3")}, []string{"mobula 9.9", release.Version}},
		"no interpreter":      {Python{Interpreter: filepath.Join(interpreter(t, "hello"), "python3")}, []string{"no Python interpreter", "hello"}},
		"not there":           {Python{Interpreter: "/nowhere/python3"}, []string{"/nowhere/python3", EnvPython}},
		"one that fails":      {Python{Interpreter: "/bin/false"}, []string{"/bin/false", "exit status 1"}},
	} {
		_, err := c.python.Program(ctx)
		if !errors.Is(err, errs.ErrRuntimeSetup) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", name, err, want)
			}
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (Python{}).Program(ctx); err == nil || !strings.Contains(err.Error(), "no python3 in PATH") {
		t.Errorf("an empty PATH: %v", err)
	}
	over, end := context.WithCancel(ctx)
	end()
	if _, err := (Python{Interpreter: "/bin/sleep"}).Program(over); err == nil {
		t.Error("asked though its context has ended")
	}
}
