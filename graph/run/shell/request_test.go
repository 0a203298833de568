package shell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"mobula/graph"
	"mobula/graph/run"
	"mobula/internal/errs"
)

// chain is a request for n tasks, each of which takes the one before, in CBOR.
func chain(t testing.TB, n int) []byte {
	t.Helper()
	numbers := func(f func(i int) []int32) (b []byte) {
		for i := range n {
			for _, x := range f(i) {
				b = binary.LittleEndian.AppendUint32(b, uint32(x))
			}
		}
		return b
	}
	r := run.Request{Version: run.Version, Func: "f", Saturation: graph.DefaultSaturation, Wanted: binary.LittleEndian.AppendUint32(nil, uint32(n-1))}
	for i := range n {
		r.Keys = append(r.Keys, fmt.Sprint("t", i))
	}
	before := func(i int) []int32 { return []int32{int32(i) - 1}[:min(i, 1)] }
	r.Deps = numbers(before)
	r.DepCount = numbers(func(i int) []int32 { return []int32{int32(len(before(i)))} })
	r.Length = numbers(func(int) []int32 { return []int32{0} })
	r.Blobs = binary.LittleEndian.AppendUint32(nil, uint32(n))
	b, err := cbor.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// By default CBOR's decoder takes lists of up to 131,072.
func TestARequestMayHaveAnyNumberOfTasks(t *testing.T) {
	const n = 150_000
	if w, err := parse(chain(t, n)); err != nil || w.Len() != n || len(w.DepsOf(n-1)) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	if _, err := parse([]byte("no CBOR")); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(chain(f, 3))
	f.Fuzz(func(_ *testing.T, b []byte) {
		if w, err := parse(b); err == nil {
			_ = w.Len() // it has a graph
		}
	})
}
