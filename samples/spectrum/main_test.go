package main

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

// python gives the interpreter, and where the package mobula and spectrum.py are.
func python(t *testing.T) (path string, dirs []string) {
	t.Helper()
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	return mobulatest.Python(t, "cbor2", "cloudpickle", "numpy"), []string{root, filepath.Dir(root) + "/samples/spectrum"}
}

func TestGoMakesASignalAndNumPyFindsItsTones(t *testing.T) {
	path, dirs := python(t)
	for name, opts := range map[string][]mobula.StartOption{"embedded": nil, "processes": {mobula.WithProcesses()}} {
		t.Run(name, func(t *testing.T) {
			with := mobula.WithPython(mobula.PythonInterpreter(path), mobula.PythonPath(dirs...))
			ctx := mobulatest.Context(t, append(opts, with)...)
			got, err := run(ctx, 100_000, []float64{50, 440})
			if err != nil || len(got) != 2 || math.Abs(got[0]-50) > 0.1 || math.Abs(got[1]-440) > 0.1 {
				t.Errorf("%v, %v", got, err)
			}
			var py *mobula.PythonError
			if _, err := Peaks.Go(ctx, mobula.V([]float64{}), mobula.V(1.0), mobula.V(1)).Get(ctx); !errors.As(err, &py) || !py.IsA("ValueError") {
				t.Errorf("of no samples: %v", err)
			}
		})
	}
}

// The Python program calls the functions of this test's own binary, which are the sample's.
func TestAPythonProgramCallsTheFunctionsOfGo(t *testing.T) {
	path, dirs := python(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := mobulatest.Start(t)
	cmd := exec.CommandContext(t.Context(), path, "spectrum.py", program, "100000")
	cmd.Env = append(os.Environ(), "MOBULA_ADDRESS="+c.Address(), "PYTHONPATH="+strings.Join(dirs, ":"))
	out, err := cmd.CombinedOutput()
	if want := "100000 samples of [50.0, 120.0, 440.0] Hz: the loudest are [50.0, 120.0, 440.0] Hz\n"; err != nil || string(out) != want {
		t.Errorf("%v, printed\n%s", err, out)
	}
}

func TestDespike(t *testing.T) {
	got, err := despike(t.Context(), []float64{1, 2, 100, 3, 4})
	if err != nil || !slices.Equal(got, []float64{1, 2, 3, 4, 4}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := signal(t.Context(), 0, nil); err == nil {
		t.Error("a signal of no samples")
	}
}
