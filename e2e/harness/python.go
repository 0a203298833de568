package harness

import (
	"path/filepath"
	"testing"

	"mobula"
	"mobula/mobulatest"
)

// PythonHelpers is the module that is Python's half of these tests: python/tests/helpers_of_go.py.
const PythonHelpers = "helpers_of_go"

// Python gives the options of Python workers that know the package and the helpers of this source. It is for packages beside this one.
func Python(t *testing.T) []mobula.PythonOption {
	t.Helper()
	root, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	path := mobulatest.Python(t, "cbor2", "cloudpickle", "numpy", "pyarrow")
	return []mobula.PythonOption{mobula.PythonInterpreter(path), mobula.PythonPath(root, filepath.Join(root, "tests"))}
}
