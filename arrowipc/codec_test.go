package arrowipc

import (
	"context"
	"errors"
	"math"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"mobula"
	"mobula/internal/codec"
	"mobula/internal/errs"
	"mobula/mobulatest"
	"mobula/wire"
)

func TestMain(m *testing.M) { mobulatest.Main(m) }

// rows is a batch of n rows: numbers, texts with a null, lists and a dictionary.
func rows(n int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Float64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	list := b.Field(2).(*array.ListBuilder)
	for i := range n {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		if i%3 == 1 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append("row")
		}
		list.Append(true)
		list.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), 7}, nil)
		if err := b.Field(3).(*array.BinaryDictionaryBuilder).AppendString([]string{"a", "b"}[i%2]); err != nil {
			panic(err)
		}
	}
	return b.NewRecordBatch()
}

func registry(t *testing.T) *codec.Registry {
	t.Helper()
	r := codec.NewRegistry(codec.Refs{})
	if err := r.Add(streams{}); err != nil {
		t.Fatal(err)
	}
	return r
}

func encode[T any](t *testing.T, r *codec.Registry, v T, inline int) wire.Value {
	t.Helper()
	e, err := codec.Of[T](r).Encode(&v, nil, inline)
	if err != nil {
		t.Fatal(err)
	}
	data := e.Inline
	if e.Fill != nil {
		data = make([]byte, e.Size)
		e.Fill(data)
	}
	return wire.Value{Meta: e.Meta, Data: data}
}

func TestRoundTrip(t *testing.T) {
	r := registry(t)
	whole := rows(1000)
	for name, b := range map[string]arrow.RecordBatch{"whole": whole, "slice": whole.NewSlice(10, 20), "empty": whole.NewSlice(0, 0)} {
		for _, inline := range []int{0, math.MaxInt} {
			for _, alias := range []bool{false, true} {
				got, err := codec.Of[arrow.RecordBatch](r).Decode(encode(t, r, b, inline), alias, nil)
				if err != nil || !array.RecordEqual(got, b) {
					t.Errorf("%s, inline %d, alias %v: %v, %v", name, inline, alias, got, err)
				}
			}
		}
	}
	table := array.NewTableFromRecords(whole.Schema(), []arrow.RecordBatch{whole, whole.NewSlice(3, 9)})
	got, err := codec.Of[arrow.Table](r).Decode(encode(t, r, table, 0), true, nil)
	if err != nil || !array.TableEqual(got, table) {
		t.Errorf("a table: %v, %v", got, err)
	}
	for _, v := range []any{whole, table} { // what it is, its header says
		got, err := codec.Of[any](r).Decode(encode(t, r, v, 0), true, nil)
		if _, isTable := got.(arrow.Table); err != nil || isTable != (v == any(table)) {
			t.Errorf("as any: %T, %v", got, err)
		}
	}
}

func TestColumnsLieInTheStream(t *testing.T) {
	r := registry(t)
	v := encode(t, r, rows(1000), 0)
	from := uintptr(unsafe.Pointer(unsafe.SliceData(v.Data)))
	for _, alias := range []bool{true, false} {
		b, err := codec.Of[arrow.RecordBatch](r).Decode(v, alias, nil)
		if err != nil {
			t.Fatal(err)
		}
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Column(0).(*array.Float64).Float64Values())))
		if in := from <= at && at < from+uintptr(len(v.Data)); in != alias {
			t.Errorf("alias %v: the column lies in the stream: %v", alias, in)
		}
	}
}

func TestDamagedStreamsAreErrors(t *testing.T) {
	r := registry(t)
	b := rows(20)
	v := encode(t, r, b, 0)
	for n := range v.Data[:len(v.Data)-8] { // the last 8 are the end's mark, which some writers leave out
		if _, err := codec.Of[arrow.RecordBatch](r).Decode(wire.Value{Meta: v.Meta, Data: v.Data[:n]}, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
			t.Fatalf("cut after %d of %d bytes: %v", n, len(v.Data), err)
		}
	}
	two := array.NewTableFromRecords(b.Schema(), []arrow.RecordBatch{b, b})
	if _, err := codec.Of[arrow.RecordBatch](r).Decode(encode[arrow.Table](t, r, two, 0), true, nil); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("two batches as one: %v", err)
	}
	var none arrow.RecordBatch
	if _, err := codec.Of[arrow.RecordBatch](r).Encode(&none, nil, 0); !errors.Is(err, errs.ErrNotEncodable) {
		t.Errorf("a nil batch: %v", err)
	}
	if _, err := codec.Of[arrow.RecordBatch](codec.NewRegistry(codec.Refs{})).Decode(v, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("without the codec: %v", err)
	}
}

var (
	make1  = mobula.Register1("arrowipc/make", func(_ context.Context, n int) (arrow.RecordBatch, error) { return rows(n), nil })
	total1 = mobula.Register1("arrowipc/total", func(_ context.Context, b arrow.RecordBatch) (float64, error) {
		var sum float64
		for _, x := range b.Column(0).(*array.Float64).Float64Values() {
			sum += x
		}
		return sum, nil
	})
)

func TestTasksPassBatches(t *testing.T) {
	ctx := mobulatest.Context(t, mobula.WithProcesses())
	for _, n := range []int{10, 20_000} { // inline, and in the store
		made := make1.Go(ctx, mobula.V(n))
		if sum, err := total1.Go(ctx, made).Get(ctx); err != nil || sum != float64(n*(n-1)/2) {
			t.Errorf("%d rows: %v, %v", n, sum, err)
		}
		view, err := made.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := view.Value(); err != nil || !array.RecordEqual(b, rows(n)) {
			t.Errorf("%d rows: %v, %v", n, b, err)
		}
		if err := view.Close(); err != nil {
			t.Error(err)
		}
	}
}
