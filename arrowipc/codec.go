package arrowipc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"mobula"
	"mobula/internal/codec"
	"mobula/internal/errs"
)

// The names of the values in their headers.
const (
	nameBatch = "arrow.RecordBatch"
	nameTable = "arrow.Table"
)

var (
	typeOfBatch = reflect.TypeFor[arrow.RecordBatch]()
	typeOfTable = reflect.TypeFor[arrow.Table]()
)

func init() {
	if err := mobula.RegisterCodec(streams{}); err != nil {
		panic(err) // another package has taken the codec's number
	}
}

// streams is the codec.
type streams struct{}

func (streams) ID() codec.ID { return codec.Arrow }

func (streams) Match(t reflect.Type) bool {
	return t.Implements(typeOfBatch) || t.Implements(typeOfTable)
}

// Encode writes the stream twice, the first time only to know its size; columns are copied once, by fill.
func (streams) Encode(v any) (h codec.Header, size int, fill func(dst []byte), err error) {
	var write func(w io.Writer) error
	switch v := v.(type) {
	case arrow.RecordBatch:
		h.Name, write = nameBatch, func(w io.Writer) error { return writeBatch(w, v) }
	case arrow.Table:
		h.Name, write = nameTable, func(w io.Writer) error { return writeTable(w, v) }
	default: // Match has seen to it, but for a nil
		return h, 0, nil, errs.New(errs.CodeNotEncodable, "a nil record batch or table")
	}
	var c counter
	if err := write(&c); err != nil {
		return h, 0, nil, err
	}
	return h, int(c), func(dst []byte) {
		s := slot{dst}
		if err := write(&s); err != nil || len(s.rest) != 0 {
			panic(fmt.Sprintf("the value changed while it was written: %d of %d bytes are left, %v", len(s.rest), len(dst), err))
		}
	}, nil
}

func writeBatch(w io.Writer, b arrow.RecordBatch) error {
	out := ipc.NewWriter(w, ipc.WithSchema(b.Schema()))
	return errors.Join(out.Write(b), out.Close())
}

func writeTable(w io.Writer, t arrow.Table) error {
	out := ipc.NewWriter(w, ipc.WithSchema(t.Schema()))
	rows := array.NewTableReader(t, -1)
	defer rows.Release()
	for rows.Next() {
		if err := out.Write(rows.RecordBatch()); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(rows.Err(), out.Close())
}

// counter counts what is written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// slot is memory that is written from its start.
type slot struct{ rest []byte }

func (s *slot) Write(p []byte) (int, error) {
	n := copy(s.rest, p)
	s.rest = s.rest[n:]
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// alignment of an IPC stream in memory: Arrow's own, inside a stream.
const alignment = 8

// Decode gives what is wanted, or for an interface that both satisfy what the stream was.
func (streams) Decode(h codec.Header, data []byte, alias bool, want reflect.Type) (any, error) {
	if !alias || uintptr(unsafe.Pointer(unsafe.SliceData(data)))%alignment != 0 {
		data = bytes.Clone(data)
	}
	r, err := ipc.NewReaderFromMessageReader(&messages{rest: data})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var batches []arrow.RecordBatch
	defer func() {
		for _, b := range batches {
			b.Release()
		}
	}()
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		batches = append(batches, b)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	table := h.Name == nameTable
	switch want {
	case typeOfBatch:
		table = false
	case typeOfTable:
		table = true
	}
	if table {
		return array.NewTableFromRecords(r.Schema(), batches), nil
	}
	if len(batches) != 1 {
		return nil, errs.New(errs.CodeNotDecodable, "a stream of %d record batches; take it as an arrow.Table", len(batches))
	}
	b := batches[0]
	batches = nil // it is the caller's now
	return b, nil
}
