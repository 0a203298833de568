package wire

import (
	"bytes"
	"reflect"
	"testing"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

const passed ids.JobID = 7

// reports are Dones of a job's tasks.
func reports(job ids.JobID, n, size int) (out []Msg) {
	for i := range n {
		var data []byte
		if size > 0 {
			data = bytes.Repeat([]byte{byte(i)}, size)
		}
		out = append(out, &Done{Task: ids.RootTask(job, uint64(i+1)), Attempt: 1, Lease: 5, Times: Times{Received: 1, Started: 2, Ended: 3},
			Results: []Result{{Kind: ResultInline, Value: Value{Data: data}}}})
	}
	return out
}

// readPassing reads frames, of which reports of a job are passed on.
func readPassing(job ids.JobID, data []byte) ([]Msg, error) {
	x := &FrameReader{Limit: MaxFrame, Passing: job}
	defer x.Release()
	var out []Msg
	for len(data) > 0 {
		n := copy(x.Room(), data)
		x.Put(n)
		data = data[n:]
		batch, err := x.Next()
		if out = append(out, batch...); err != nil {
			return out, err
		}
	}
	return out, nil
}

// decoded is messages with those that were passed on decoded.
func decoded(t *testing.T, msgs []Msg) (out []Msg) {
	t.Helper()
	for _, m := range msgs {
		x, ok := m.(*Encoded)
		if !ok {
			out = append(out, m)
			continue
		}
		some, err := x.Messages()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, some...)
	}
	return out
}

// A job's reports come in one piece as far as they follow one another, in order with what is between them; those of others' tasks are read.
func TestReportsArePassedOn(t *testing.T) {
	between, other := &Stats{Worn: true}, reports(passed+1, 1, 8)
	for _, size := range []int{0, 8, 10_000, readBuffer + 1} {
		sent := append(reports(passed, 3, size), between)
		sent = append(append(sent, reports(passed, 2, size)...), other...)
		got, err := readPassing(passed, rawFrame(t, sent...))
		if err != nil {
			t.Fatal(err)
		}
		if all := decoded(t, got); !reflect.DeepEqual(all, sent) {
			t.Errorf("with results of %d bytes %+v comes as %+v", size, sent, all)
		}
		for _, m := range got {
			if d, ok := m.(*Done); ok && d.Task.Job() == passed {
				t.Errorf("%v of %d bytes was read", d.Task, size)
			}
			if x, ok := m.(*Encoded); ok && x.Job != passed {
				t.Errorf("reports of job %v, want %v", x.Job, passed)
			}
		}
		if n := Count(got); n != len(sent) {
			t.Errorf("%d messages, want %d", n, len(sent))
		}
		if size < 100 && len(got) != 4 {
			t.Errorf("%d parts, want 4", len(got))
		}
	}
}

// A report that is malformed is found by who passes it on.
func TestAMalformedReportIsNotPassedOn(t *testing.T) {
	good := rawFrame(t, reports(passed, 1, 8)...)
	for at := headerSize + 2; at < len(good); at++ { // behind kind and length
		bad := bytes.Clone(good)
		bad[at] ^= 0x80
		_, want := readPassing(0, bad)
		if _, err := readPassing(passed, bad); (err == nil) != (want == nil) || err != nil && !isErr(err, errs.ErrProtocol) {
			t.Errorf("with byte %d changed: %v; who reads it says %v", at, err, want)
		}
	}
}

// What is passed on is written as it came: by an Encoder, and in frames, which stay within their size.
func TestWhatIsPassedOnIsWrittenAsItCame(t *testing.T) {
	for _, size := range []int{8, 10_000, readBuffer + 1} {
		sent := reports(passed, 20, size)
		var e Encoder
		var plain []byte
		for _, m := range sent {
			plain, _ = e.Append(plain, m)
		}
		var x *Encoded
		for b := plain; len(b) > 0; { // in two halves
			_, _, rest, _ := Cut(plain, b)
			var err error
			if x, err = PassOn(x, b[:len(b)-len(rest)]); err != nil {
				t.Fatal(err)
			}
			b = rest
		}
		if again, err := e.Append(nil, x); err != nil || !bytes.Equal(again, plain) {
			t.Errorf("results of %d bytes: %v", size, err)
		}
		for _, splice := range []int{0, 8 << 10} {
			o := NewFrameWriter(splice)
			if err := o.Add(x, nil); err != nil {
				t.Fatal(err)
			}
			if frames := joined(o.Parts(nil)); !bytes.Equal(frames, rawFrame(t, sent...)) {
				t.Errorf("results of %d bytes are in other frames than if they had been encoded here", size)
			}
		}
	}
}

// A report is looked at without an allocation.
func TestPassingOnAllocatesNothing(t *testing.T) {
	body := Append(nil, reports(passed, 1, 8)[0])
	var d Decoder
	if n := testing.AllocsPerRun(100, func() {
		if job, err := d.report(body); job != passed || err != nil {
			t.Fatal(job, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Nothing is believed of what is passed on but that it is messages of this version.
func TestWhatIsNoMessageIsNotPassedOn(t *testing.T) {
	for _, c := range []struct {
		data []byte
		kind error
	}{
		{[]byte{byte(KindExec)<<3 | wtBytes, 9}, errs.ErrProtocol},
		{[]byte{byte(KindExec) << 3, 9}, errs.ErrProtocol},
		{appendVarint(appendVarint(nil, uint64(kindEnd)<<3|wtBytes), 0), errs.ErrVersion},
	} {
		if x, err := PassOn(nil, c.data); x != nil || !isErr(err, c.kind) {
			t.Errorf("%x: %+v, %v", c.data, x, err)
		}
	}
	// Half an Exec has no times to be shifted, and is its receiver's to refuse.
	var e Encoder
	whole, _ := e.Append(nil, &Exec{Lease: 1, Tasks: []ExecTask{{Spec: &TaskSpec{ID: ids.RootTask(1, 1), Opts: &TaskOptions{}, Deadline: 5, Submitted: 5}}}})
	_, body, _, _ := Cut(whole, whole)
	for n := range body {
		half := append(appendVarint(appendVarint(nil, uint64(KindExec)<<3|wtBytes), uint64(n)), body[:n]...)
		x, err := PassOn(nil, half)
		if err != nil {
			t.Fatal(err)
		}
		x.ShiftTimes(1)
	}
}
