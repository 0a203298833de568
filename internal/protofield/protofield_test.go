package protofield

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"mobula/internal/ids"
	"mobula/internal/testkit"
)

// all is a message with a field of each sort.
type all struct {
	uint    uint64
	int     int64
	fixed   uint64
	flag    bool
	bytes   []byte
	text    string
	texts   []string
	named   map[string]string
	numbers []uint32
	task    ids.TaskID
	objects []ids.ObjectID
	inside  []all
}

func put(b []byte, m *all) []byte {
	b = PutUint(b, 1, m.uint)
	b = PutInt(b, 2, m.int)
	b = PutFixed64(b, 3, m.fixed)
	b = PutBool(b, 4, m.flag)
	b = PutBytes(b, 5, m.bytes)
	b = PutString(b, 6, m.text)
	b = PutStrings(b, 7, m.texts)
	b = PutMap(b, 8, m.named)
	b = PutNumbers(b, 9, m.numbers)
	b = PutTask(b, 10, &m.task)
	for i := range m.objects {
		b = PutObject(b, 11, &m.objects[i])
	}
	for i := range m.inside {
		var at int
		b, at = Open(b, 12)
		b = Shut(put(b, &m.inside[i]), at)
	}
	return b
}

func take(b []byte, m *all) error {
	return Each(b, func(f Field) (err error) {
		switch f.Num {
		case 1:
			m.uint = f.N
		case 2:
			m.int = f.Int()
		case 3:
			m.fixed = f.N
		case 4:
			m.flag = f.N != 0
		case 5:
			m.bytes = f.Copied()
		case 6:
			m.text = string(f.B)
		case 7:
			*More(f, &m.texts) = string(f.B)
		case 8:
			err = f.Entry(&m.named)
		case 9:
			m.numbers, err = Numbers[uint32](f)
		case 10:
			err = f.Task(&m.task)
		case 11:
			err = f.Object(More(f, &m.objects))
		case 12:
			err = take(f.B, More(f, &m.inside))
		}
		return err
	})
}

func drawAll(t *rapid.T, depth int) (m all) {
	list := func(n int, f func()) {
		for range rapid.IntRange(0, n).Draw(t, "length") {
			f()
		}
	}
	text := rapid.StringN(0, 5, -1)
	m.uint, m.int, m.fixed, m.flag = rapid.Uint64().Draw(t, "uint"), rapid.Int64().Draw(t, "int"), rapid.Uint64().Draw(t, "fixed"), rapid.Bool().Draw(t, "flag")
	list(200, func() { m.bytes = append(m.bytes, 7) })
	m.text = text.Draw(t, "text")
	list(3, func() { m.texts = append(m.texts, text.Draw(t, "text")) })
	list(3, func() {
		if m.named == nil {
			m.named = make(map[string]string)
		}
		m.named[text.Draw(t, "name")] = text.Draw(t, "text")
	})
	list(3, func() { m.numbers = append(m.numbers, rapid.Uint32().Draw(t, "number")) })
	list(1, func() { m.task = ids.RootTask(3, m.uint) })
	list(3, func() { m.objects = append(m.objects, m.task.Return(len(m.objects))) })
	if depth < 2 {
		list(2, func() { m.inside = append(m.inside, drawAll(t, depth+1)) })
	}
	return m
}

func TestFieldsAreReadAsTheyWereWritten(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		want := drawAll(rt, 0)
		b := put(nil, &want)
		if !bytes.Equal(b, put(nil, &want)) {
			rt.Fatal("the same message is written in two ways")
		}
		var got all
		if err := take(b, &got); err != nil || !reflect.DeepEqual(got, want) {
			rt.Fatalf("read %+v (%v), wrote %+v", got, err, want)
		}
	})
}

func TestAListIsAllocatedOnce(t *testing.T) {
	want := all{objects: make([]ids.ObjectID, 1000), numbers: make([]uint32, 1000), texts: make([]string, 1000)}
	b := put(nil, &want)
	var got all
	if n := testing.AllocsPerRun(10, func() {
		got = all{}
		if err := take(b, &got); err != nil {
			t.Fatal(err)
		}
	}); n > 4 { // one is the message's own
		t.Errorf("three lists take %.0f allocations", n)
	}
	if !reflect.DeepEqual(got, want) {
		t.Error("they are read as others")
	}
}

// A length of four bytes is one that protobuf libraries read, to the largest.
func TestLengthsAreVarints(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 1 << 14, 1<<21 - 1, 1 << 21} {
		b, at := Open(nil, 3)
		b = Shut(append(b, make([]byte, n)...), at)
		num, typ, head := protowire.ConsumeTag(b)
		got, size := protowire.ConsumeBytes(b[head:])
		if num != 3 || typ != protowire.BytesType || len(got) != n || head+size != len(b) {
			t.Errorf("%d bytes are written as field %d of type %d with %d", n, num, typ, len(got))
		}
	}
}

func TestMalformedFields(t *testing.T) {
	field := func(num Number, b ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	for _, c := range []struct {
		b    []byte
		word string
	}{
		{[]byte{0x80}, "unexpected EOF"},
		{[]byte{1 << 3}, "unexpected EOF"},
		{[]byte{3<<3 | 1, 1, 2}, "unexpected EOF"},
		{[]byte{5<<3 | 2, 4, 1}, "unexpected EOF"},
		{[]byte{0, 0}, "invalid field number"},
		{[]byte{5<<3 | 3, 5<<3 | 4}, "field 5 has the wire type 3"},
		{[]byte{5<<3 | 5, 0, 0, 0, 0}, "field 5 has the wire type 5"},
		{field(8, 1<<3), "unexpected EOF"},
		{field(9, 1, 0x80), "unexpected EOF"},
		{field(10, 1, 2), "a task's id of 2 bytes"},
		{field(11, 1, 2, 3, 4, 5), "an object's id of 5 bytes"},
		{field(12, 10<<3), "unexpected EOF"},
	} {
		var m all
		if err := take(c.b, &m); err == nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%x: %v, want %q", c.b, err, c.word)
		}
	}
	if err := (Field{N: 4}).AtMost(3, "state"); err == nil || err.Error() != "state 4 is unknown" {
		t.Error(err)
	}
	if err := (Field{Num: 7, B: []byte{1}}).Into(make([]byte, 2)); err == nil || err.Error() != "field 7 has 1 bytes, want 2" {
		t.Error(err)
	}
}
