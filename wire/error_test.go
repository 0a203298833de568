package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/wire/pb"
)

var errNoRow = errors.New("no such row")

func init() { errs.RegisterSentinel("wire-test/no-row", errNoRow) }

func TestErrorsKeepWhatTheyAreAcrossTheWire(t *testing.T) {
	in := errs.From(fmt.Errorf("load: %w", errors.Join(errNoRow, errs.New(errs.CodeObjectFreed, "object x"), errs.ErrStoreFull)))
	in.Stack, in.Task, in.Name = "goroutine 1\n\tf()", "00ff", "app/load"
	out, err := ParseError(AppendError(nil, in))
	if err != nil || !reflect.DeepEqual(out, in) {
		t.Fatalf("got %+v, %v; want %+v", out, err, in)
	}
	for _, want := range []error{errNoRow, errs.ErrObjectFreed, errs.ErrObjectLost, errs.ErrStoreFull} {
		if !errors.Is(out, want) {
			t.Errorf("%v is lost", want)
		}
	}
	if got := AppendError([]byte("x"), nil); string(got) != "x" {
		t.Errorf("a nil error appends %q", got[1:])
	}
}

func TestErrorsAreBounded(t *testing.T) {
	deep := errs.New(errs.CodeUnknown, "bottom")
	for range 100 {
		deep = &errs.Error{Code: errs.CodeTaskFailed, Msg: "level", Cause: []*errs.Error{deep}}
	}
	wide := &errs.Error{Msg: "wide"}
	for range 1000 {
		wide.Cause = append(wide.Cause, nil, &errs.Error{Code: errs.CodePanic, Msg: strings.Repeat("ß", maxErrLine), Stack: strings.Repeat("s", 2*maxErrStack)})
	}
	loop := &errs.Error{Msg: "loop"}
	loop.Cause = []*errs.Error{loop, loop}
	long := &errs.Error{Msg: strings.Repeat("ß", maxErrLine), Name: strings.Repeat("n", 2*maxErrName), Stack: "\xff\xfe not text"}
	for name, in := range map[string]*errs.Error{"deep": deep, "wide": wide, "loop": loop, "long": long} {
		data := AppendError(nil, in)
		if len(data) > maxErrTexts+64*maxErrCauses {
			t.Errorf("%s: %d bytes", name, len(data))
		}
		out, err := ParseError(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		depth, count := measure(out, 0)
		if depth > maxErrDepth || count > maxErrCauses {
			t.Errorf("%s: %d deep, %d in all", name, depth, count)
		}
		p := new(pb.Error)
		if err := proto.Unmarshal(data, p); err != nil {
			t.Errorf("%s: the generated code refuses it: %v", name, err)
		}
	}
	out, err := ParseError(AppendError(nil, long))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.Msg, "(32768 bytes in all)") || len(out.Msg) > maxErrLine || !utf8.ValidString(out.Msg) || !strings.HasPrefix(out.Msg, "ßß") {
		t.Errorf("a long message was cut to %d bytes ending in %q", len(out.Msg), out.Msg[len(out.Msg)-40:])
	}
	if out.Stack != "\uFFFD not text" {
		t.Errorf("the stack became %q", out.Stack)
	}
}

func measure(x *errs.Error, level int) (depth, count int) {
	depth, count = level, 1
	for _, c := range x.Cause {
		d, n := measure(c, level+1)
		depth, count = max(depth, d), count+n
	}
	return depth, count
}

func TestReceiverBoundsErrorsItself(t *testing.T) {
	p := &pb.Error{Code: 1 << 20, Msg: "bottom"}
	for range 50 {
		p = &pb.Error{Code: 1, Cause: []*pb.Error{p, {Code: 2}, {Code: 3}}}
	}
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ParseError(data)
	if err != nil {
		t.Fatal(err)
	}
	if depth, count := measure(out, 0); depth > maxErrDepth || count > maxErrCauses {
		t.Errorf("%d deep, %d in all", depth, count)
	}
	later, err := ParseError(AppendError(nil, &errs.Error{Code: errs.Code(60_000), Msg: "of a later version"}))
	if err != nil || later.Error() != "of a later version" {
		t.Errorf("a code of a later version reads as %v, %v", later, err)
	}
	for _, bad := range [][]byte{{0x80}, {2<<3 | 2, 9}, {2<<3 | 2, 1, 0xff}} {
		_, err := ParseError(bad)
		wantErr(t, err, errs.ErrProtocol, "malformed Error")
	}
}

// What names references has them, as many as there may be; what was left out has none.
func TestReferencesOfErrors(t *testing.T) {
	refs := make([]ids.ObjectID, 10_000)
	for i := range refs {
		refs[i] = ids.RootTask(1, 1).Return(i)
	}
	x := &errs.Error{Code: errs.CodeTaskFailed, Cause: []*errs.Error{
		{Code: errs.CodePython, Stack: "x", Refs: refs},
		{Code: errs.CodeUser, Data: make([]byte, errs.MaxData+1), Refs: refs},
		{Code: errs.CodeUser, Data: []byte("x"), Refs: refs},
	}}
	got, err := ParseError(AppendError(nil, x))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{10_000, 0, maxErrRefs - 10_000} {
		if c := got.Cause[i]; !slices.Equal(c.Refs, refs[:want]) {
			t.Errorf("cause %d has %d references, want %d", i, len(c.Refs), want)
		}
	}
	small := &errs.Error{Code: errs.CodeTaskFailed, Cause: []*errs.Error{{Code: errs.CodePython, Refs: refs[:2]}}, Refs: refs[:1]}
	one := func(id ids.ObjectID) []byte {
		return append(append([]byte{0x42, 0x18}, id.Task[:]...), 0, 0, byte(id.Index>>8), byte(id.Index))
	}
	inner := slices.Concat([]byte{0x08, 0x29}, one(refs[0]), one(refs[1]))
	if raw := AppendError(nil, small); !bytes.Equal(raw, slices.Concat([]byte{0x08, 0x01, 0x32, byte(len(inner))}, inner, one(refs[0]))) { // as Python's codec.encode
		t.Errorf("the bytes are %x", raw)
	}
	var more []byte // by who knows no bound
	for range 2 {
		c := protowire.AppendTag(nil, 8, protowire.BytesType)
		one := protowire.AppendBytes(c, make([]byte, 20))
		more = protowire.AppendBytes(protowire.AppendTag(more, 6, protowire.BytesType), bytes.Repeat(one, 10_000))
	}
	if got, err = ParseError(more); err != nil || len(got.AllRefs()) != maxErrRefs {
		t.Errorf("%d references are read (%v)", len(got.AllRefs()), err)
	}
	if _, err = ParseError([]byte{8<<3 | 2, 3, 1, 2, 3}); err == nil {
		t.Error("a reference of 3 bytes is read")
	}
}
