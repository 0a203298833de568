package codec

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"mobula/internal/errs"
	"mobula/wire"
)

var record = flag.Bool("record", false, "write the values that Python's tests read")

// python is where both languages' tests keep values that the other reads.
const python = "../../python/tests/testdata"

// stored is a value as one language wrote it.
type stored struct {
	Go     string `json:"go"`     // its type here
	Python string `json:"python"` // as Python's repr shows it
	Meta   string `json:"meta"`   // hexadecimal
	Data   string `json:"data"`   // hexadecimal
}

// shared are values that mean the same in both languages.
var shared = []struct {
	v      any
	python string
}{
	{true, "True"}, {false, "False"},
	{0, "0"}, {23, "23"}, {24, "24"}, {-1, "-1"}, {math.MaxInt64, "9223372036854775807"}, {math.MinInt64, "-9223372036854775808"},
	{1.5, "1.5"}, {0.1, "0.1"}, {math.Inf(1), "inf"},
	{"", "''"}, {"text \u00e9", "'text \u00e9'"},
	{[]byte("raw"), "b'raw'"},
	{[]float64{0, 1.5, -2}, "array([ 0. ,  1.5, -2. ])"},
	{[]int32{1, -2}, "array([ 1, -2], dtype=int32)"},
	{[]bool{true, false}, "array([ True, False])"},
	{[][2]int64{{1, 2}, {3, 4}}, "array([[1, 2],\n       [3, 4]])"},
	{[]complex128{1i}, "array([0.+1.j])"},
	{map[string]int{"a": 1, "b": 2}, "{'a': 1, 'b': 2}"},
	{[]string{"x", "y"}, "['x', 'y']"},
	{struct{ Name string }{"n"}, "{'Name': 'n'}"},
}

func encodeAny(t *testing.T, v any) stored {
	t.Helper()
	r := NewRegistry(Refs{})
	c := reflect.New(reflect.TypeOf(v)).Elem()
	c.Set(reflect.ValueOf(v))
	e, err := r.PlanOf(c.Type()).encode(c, nil, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	return stored{Go: c.Type().String(), Meta: hex.EncodeToString(e.Meta), Data: hex.EncodeToString(e.Inline)}
}

// What Python's tests read is what this build writes.
func TestPythonReadsWhatGoWrites(t *testing.T) {
	var all []stored
	for _, s := range shared {
		x := encodeAny(t, s.v)
		x.Python = s.python
		all = append(all, x)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(python, "go_values.json")
	if *record {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(have)) != string(text) {
		t.Errorf("%s is not what this build writes (%v): go test ./internal/codec -run Python -record", path, err)
	}
}

// What Python wrote reads as the same value, of each type that can hold it.
func TestGoReadsWhatPythonWrites(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(python, "python_values.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]any)
	for _, s := range shared {
		want[s.python] = s.v
	}
	r := NewRegistry(Refs{})
	read := 0
	for _, s := range all {
		v := wire.Value{Meta: unhex(t, s.Meta), Data: unhex(t, s.Data)}
		w, ok := want[s.Python]
		if !ok {
			t.Fatalf("%s: no such value here", s.Python)
		}
		dst := reflect.New(reflect.TypeOf(w)).Elem()
		if err := r.PlanOf(dst.Type()).decode(v, false, dst, nil); err != nil {
			t.Errorf("%s as %T: %v", s.Python, w, err)
			continue
		}
		if !reflect.DeepEqual(dst.Interface(), w) {
			t.Errorf("%s reads as %v, want %v", s.Python, dst.Interface(), w)
		}
		read++
	}
	if read < 18 {
		t.Errorf("%d values read", read)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAPythonObjectIsNamed(t *testing.T) {
	_, err := Of[int](NewRegistry(Refs{})).Decode(wire.Value{Meta: Header{Codec: Pickle, Name: "pandas.DataFrame"}.Append(nil), Data: []byte("x")}, false, nil)
	if !errors.Is(err, errs.ErrNotDecodable) || !strings.Contains(err.Error(), "pickled Python object of type pandas.DataFrame, want int") {
		t.Error(err)
	}
}
