//go:build !invariants

package languages

// A build with invariants gives copies, so that a slice kept too long faults.

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	columns "github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"mobula"
	_ "mobula/arrowipc"
	"mobula/e2e/harness"
)

var (
	pyWhere = mobula.PythonFunc1[[]float64, string](harness.PythonHelpers, "where")
	pyRows  = mobula.PythonFunc1[arrow.RecordBatch, arrow.RecordBatch](harness.PythonHelpers, "rows")
	goWhere = mobula.Register1("e2e/where-array", func(_ context.Context, xs []float64) (string, error) {
		return mappedAt(unsafe.Pointer(unsafe.SliceData(xs)))
	})
)

// mappedAt names the file that the process has mapped at an address.
func mappedAt(p unsafe.Pointer) (string, error) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &from, &to); err == nil && from <= uintptr(p) && uintptr(p) < to {
			return strings.Join(strings.Fields(lines.Text())[5:], " "), nil
		}
	}
	return "", fmt.Errorf("%p is not mapped", p)
}

func TestArraysOfBothLanguagesLieInTheSegment(t *testing.T) {
	withPython(t, func(t *testing.T, ctx context.Context) {
		ref, err := mobula.Put(ctx, make([]float64, 100_000))
		if err != nil {
			t.Fatal(err)
		}
		path, err := pyWhere.Go(ctx, ref).Get(ctx)
		if err != nil || !strings.Contains(path, "mobula") {
			t.Fatalf("Python reads what Go put in %q, %v", path, err)
		}
		want(t, ctx, goWhere.Go(ctx, pyGrid.Go(ctx, mobula.V(100), mobula.V(1000))), path) // Go reads what Python made
		view, err := pyGrid.Go(ctx, mobula.V(100), mobula.V(1000)).View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		xs, err := view.Value()
		if err != nil || len(xs) != 100_000 || xs[777] != 777 {
			t.Errorf("%d numbers, %v", len(xs), err)
		}
		if err := view.Close(); err != nil {
			t.Error(err)
		}

		b := columns.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil))
		for i := range 50_000 {
			b.Field(0).(*columns.Float64Builder).Append(float64(i))
		}
		batch, err := pyRows.Go(ctx, mobula.V(b.NewRecordBatch())).View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got, err := batch.Value()
		if err != nil {
			t.Fatal(err)
		}
		if x := got.Column(0).(*columns.Float64); x.Len() != 50_000 || x.Value(777) != 2*777 {
			t.Errorf("%d rows", x.Len())
		}
		if at := got.Column(1).(*columns.String).Value(0); at != path {
			t.Errorf("Python reads a column of Go's in %q, want %q", at, path)
		}
		if err := batch.Close(); err != nil {
			t.Error(err)
		}
	})
}
