package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mobula/internal/errs"
	"mobula/internal/release"
	"mobula/wire"
)

// Python is how a Go driver's Python workers run.
type Python struct {
	Interpreter string   // a path, or a name to look for in PATH; empty: see interpreters
	Path        []string // directories to find modules in, before the interpreter's own
	Preload     []string // modules that the template imports, beside NumPy where there is one
}

// EnvPython names the interpreter of Python workers, where a driver does not.
const EnvPython = "MOBULA_PYTHON"

// probeTimeout bounds the question to an interpreter, which may lie on a cold, busy disk.
const probeTimeout = 30 * time.Second

// begin is what a template of ours runs; probe asks an interpreter what it is. The working directory is on
// their path, as for every `python -c`. On another node begin finds copies of the driver's directories, by wire.EnvModules.
const (
	begin = "import os,sys,json;c=json.loads(sys.argv[1]);at=json.loads(os.environ.pop('" + wire.EnvModules + "','{}'));" +
		"sys.path[:0]=[at.get(p,p) for p in c['path']+[c['cwd']]];from mobula._template import main;main(c)"
	probe = `import importlib.util, json, sys
sys.path[:0] = json.loads(sys.argv[1])
said = {"executable": sys.executable, "version": "%d.%d" % sys.version_info[:2], "numpy": importlib.util.find_spec("numpy") is not None}
try:
    import mobula
    said["mobula"] = mobula.__version__
except ImportError as x:
    said["why"] = str(x)
print(json.dumps(said))`
)

// Program finds the interpreter and gives the program of its workers. It runs each candidate once, to ask what it is.
func (p Python) Program(ctx context.Context) (*wire.Program, error) {
	path := make([]string, 0, len(p.Path))
	for _, dir := range p.Path {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, errs.New(errs.CodeInvalid, "Python path %q: %v", dir, err)
		}
		path = append(path, abs)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, errs.New(errs.CodeRuntimeSetup, "Python workers run in the driver's working directory: %v", err)
	}
	about, err := p.choose(ctx, path)
	if err != nil {
		return nil, err
	}
	preload := slices.Clone(p.Preload)
	if about.NumPy && !slices.Contains(preload, "numpy") {
		preload = append([]string{"numpy"}, preload...)
	}
	config, err := json.Marshal(map[string]any{"path": path, "version": about.Version, "cwd": cwd, "preload": preload})
	if err != nil {
		return nil, errs.New(errs.CodeInvalid, "Python workers: %v", err)
	}
	return &wire.Program{
		Language: wire.LangPython, Version: about.Version, Args: []string{about.Executable, "-c", begin, string(config)}, Single: true, Template: true,
		Roots: append(path, cwd),
	}, nil
}

// aboutPython is what an interpreter says of itself.
type aboutPython struct {
	Executable string `json:"executable"`
	Version    string `json:"version"`
	NumPy      bool   `json:"numpy"`
	Mobula     string `json:"mobula"` // the package's version; empty: it cannot be imported
	Why        string `json:"why"`    // that is so
}

// choose gives the first interpreter that has our package.
func (p Python) choose(ctx context.Context, path []string) (about aboutPython, err error) {
	var why []string
	for _, name := range p.interpreters() {
		if about, err = askPython(ctx, name, path); err == nil {
			return about, nil
		}
		why = append(why, err.Error())
	}
	if len(why) == 0 {
		why = []string{"there is no python3 in PATH"}
	}
	return about, errs.New(errs.CodeRuntimeSetup, "no Python for the workers: %s; install the package mobula %s, or name an interpreter that has it (PythonInterpreter, %s)",
		strings.Join(why, "; "), release.Version, EnvPython)
}

// interpreters are those to try: the one that was named, by the driver or by EnvPython; else the virtual environment's, and
// each python3 of PATH.
func (p Python) interpreters() []string {
	if said := cmp.Or(p.Interpreter, os.Getenv(EnvPython)); said != "" {
		return []string{said}
	}
	var out []string
	add := func(dir string) {
		file := filepath.Join(dir, "python3")
		if !filepath.IsAbs(dir) || slices.Contains(out, file) {
			return
		}
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			out = append(out, file)
		}
	}
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		add(filepath.Join(venv, "bin"))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		add(dir)
	}
	return out
}

// askPython asks an interpreter what it is. An error: it cannot run our workers.
func askPython(ctx context.Context, name string, path []string) (about aboutPython, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dirs, err := json.Marshal(path)
	if err != nil {
		return about, err
	}
	out, err := exec.CommandContext(ctx, name, "-c", probe, string(dirs)).Output()
	if err != nil {
		said := ""
		if exit, ok := err.(*exec.ExitError); ok {
			said = ": " + strings.TrimSpace(string(exit.Stderr[max(0, len(exit.Stderr)-500):]))
		}
		return about, fmt.Errorf("%s: %w%s", name, err, said)
	}
	if err := json.Unmarshal(out, &about); err != nil {
		return about, fmt.Errorf("%s is no Python interpreter: it printed %.100q", name, out)
	}
	switch {
	case about.Mobula == "":
		err = fmt.Errorf("%s (Python %s) cannot import the package mobula: %s", name, about.Version, about.Why)
	case !release.IsOfPackage(about.Mobula):
		err = fmt.Errorf("%s (Python %s) has the package mobula %s", name, about.Version, about.Mobula)
	}
	return about, err
}
