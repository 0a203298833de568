// Package arrowipc lets Arrow record batches and tables be arguments, results and objects. A program imports it for
// its effect, in the package that registers functions of such types; one that does not links nothing of Arrow:
//
//	import _ "mobula/arrowipc"
//
//	var Rows = mobula.Register1("app/rows", func(_ context.Context, b arrow.RecordBatch) (int64, error) { return b.NumRows(), nil })
//
// The types are arrow.RecordBatch and arrow.Table of github.com/apache/arrow-go/v18. A value is laid out as an Arrow IPC
// stream, which pyarrow reads and writes too. It is written once, straight into the segment, and read in place: the
// columns of an argument, or of a view, are shared memory, read-only, and valid until the call returns or the view is
// closed. Retain does not keep them longer; array.Concatenate, or Ref.Get instead of View, gives a copy.
//
// Nothing blocks. Encoding fails where Arrow cannot write a type; decoding with errs.ErrNotDecodable for a stream that is cut
// off, or that has several record batches where a single one is wanted. What is inside a stream is not verified: a value was written by
// a program of the same user, and spilled files have checksums.
package arrowipc
