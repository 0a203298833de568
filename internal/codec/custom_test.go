package codec

import (
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"mobula/internal/errs"
	"mobula/wire"
)

// matrix has a layout of its own, as an Arrow record would.
type matrix struct {
	rows, cols int
	cells      []float64
}

type matrixCodec struct{ fail bool }

func (matrixCodec) ID() ID                    { return FirstCustom + 1 }
func (matrixCodec) Match(t reflect.Type) bool { return t == reflect.TypeFor[*matrix]() }
func (c matrixCodec) Encode(v any) (Header, int, func([]byte), error) {
	if c.fail {
		return Header{}, 0, nil, errors.New("no")
	}
	m := v.(*matrix)
	h := Header{Elem: Float64, Dims: []uint64{uint64(m.rows), uint64(m.cols)}, Name: "matrix"}
	return h, 8 * len(m.cells), func(dst []byte) {
		copy(dst, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.cells))), len(dst)))
	}, nil
}

func (matrixCodec) Decode(h Header, data []byte, _ bool, _ reflect.Type) (any, error) {
	if len(h.Dims) != 2 || len(data) != int(8*h.Dims[0]*h.Dims[1]) {
		panic("bad shape")
	}
	m := &matrix{rows: int(h.Dims[0]), cols: int(h.Dims[1]), cells: make([]float64, len(data)/8)}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.cells))), len(data)), data)
	return m, nil
}

func TestCustomCodec(t *testing.T) {
	r := NewRegistry(Refs{})
	if err := r.Add(matrixCodec{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(matrixCodec{}); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a second codec of the same id: %v", err)
	}
	for _, n := range []int{1, 100} { // inline and filled
		m := &matrix{rows: n, cols: 2, cells: make([]float64, 2*n)}
		m.cells[1] = 7
		v := encode(t, r, m)
		if got, err := Of[*matrix](r).Decode(v, true, nil); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := Of[any](r).Decode(v, true, nil); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("as any: %+v, %v", got, err)
		}
		if _, err := Of[string](r).Decode(v, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
			t.Errorf("as a string: %v", err)
		}
		v.Data = v.Data[1:]
		if _, err := Of[*matrix](r).Decode(v, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
			t.Errorf("a codec that panics: %v", err)
		}
	}
	if _, err := Of[any](NewRegistry(Refs{})).Decode(wire.Value{Meta: Header{Codec: 200}.Append(nil)}, true, nil); !errors.Is(err, errs.ErrNotDecodable) {
		t.Errorf("a codec nobody registered: %v", err)
	}
	failing := NewRegistry(Refs{})
	if err := failing.Add(matrixCodec{fail: true}); err != nil {
		t.Fatal(err)
	}
	m := &matrix{}
	if _, err := Of[*matrix](failing).Encode(&m, nil, 0); !errors.Is(err, errs.ErrNotEncodable) {
		t.Errorf("a codec that fails: %v", err)
	}
}
