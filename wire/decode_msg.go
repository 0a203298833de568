package wire

import (
	"mobula/internal/errs"
	"mobula/internal/ids"
)

// submitBox is a Submit and its spec in one allocation.
type submitBox struct {
	m Submit
	s TaskSpec
}

// submitArgs is a Submit, its spec and a few arguments in one allocation.
type submitArgs struct {
	m Submit
	specArgs
}

// message decodes a body. With alias, byte strings of the result may point into b.
// A nil message with a nil error is of a kind that this version does not know.
func (d *Decoder) message(k Kind, b []byte, alias bool) (Msg, error) {
	if k == 0 {
		return nil, errs.New(errs.CodeProtocol, "message kind 0")
	}
	if k >= kindEnd {
		return nil, nil
	}
	d.start(k.String(), b, alias)
	m := d.read(k, b)
	if d.fail != nil {
		return nil, d.fail
	}
	d.msg, d.unit, d.tail = nil, nil, nil
	return m, nil
}

// read decodes a body. What is on a task's path comes first, and by hand where that is faster; decode_gen.go has the others.
func (d *Decoder) read(k Kind, b []byte) Msg {
	switch k {
	case KindSubmit:
		return readSubmit(d, b)
	case KindExec:
		return readExec(d, b)
	case KindDone:
		return readDone(d, b)
	case KindGet:
		m := new(Get)
		readGet(d, b, m)
		return m
	case KindResolved:
		m := new(Resolved)
		readResolved(d, b, m)
		return m
	case KindCall:
		return readCall(d, b)
	case KindAnswered:
		return readAnswered(d, b)
	}
	return d.cold(k, b)
}

// readSubmit reads the message as one allocation beside its byte strings.
func readSubmit(d *Decoder, b []byte) Msg {
	var m *Submit
	c := cursor{b: b, d: d}
	for c.next() {
		if c.tag != 1<<3|wtBytes {
			c.skip()
			continue
		}
		raw := c.bytes()
		if n := countTag(raw, argsTag); n == 0 || n > len(specArgs{}.args) {
			box := new(submitBox)
			box.m.Spec = &box.s
			m = &box.m
			readTaskSpec(d, raw, &box.s, nil)
		} else {
			box := new(submitArgs)
			box.m.Spec = &box.spec
			m = &box.m
			readTaskSpec(d, raw, &box.spec, box.args[:0])
		}
	}
	if m == nil {
		d.malformed(b[len(b):], "no spec")
		return nil
	}
	return m
}

func readExec(d *Decoder, b []byte) Msg {
	m, alias := new(Exec), d.alias
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.Lease = ids.LeaseID(c.varint())
		case 2<<3 | wtBytes:
			t := elem(&c, &m.Tasks)
			readExecTask(d, c.bytes(), t, alias)
		default:
			c.skip()
		}
	}
	return m
}

// doneResult is a Done and the one result that most have in one allocation.
type doneResult struct {
	m Done
	r [1]Result
}

func readDone(d *Decoder, b []byte) Msg {
	if countTag(b, resultsTag) == 1 {
		box := new(doneResult)
		box.m.Results = box.r[:0]
		return d.done(b, &box.m)
	}
	return d.done(b, new(Done))
}

// report tells whose job's task a Done is of, which is well formed. Nothing is kept of it, and as a rule nothing is allocated.
func (d *Decoder) report(b []byte) (job ids.JobID, err error) {
	d.start("Done", b, false)
	m := &d.passing
	m.Results, d.looks = m.Results[:0], true
	d.done(b, m)
	d.looks = false
	job, err = m.Task.Job(), d.fail
	if clear(m.Results); cap(m.Results) > maxScratch {
		m.Results = nil
	}
	*m = Done{Results: m.Results}
	d.msg, d.unit, d.tail = nil, nil, nil
	return job, err
}

const (
	resultsTag = 4<<3 | wtBytes
	maxScratch = 16 // results of a Done that report keeps room for
)

func (d *Decoder) done(b []byte, m *Done) *Done {
	alias := d.alias
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			c.task(&m.Task)
		case 2<<3 | wtVarint:
			m.Attempt = c.uint32()
		case 3<<3 | wtVarint:
			m.Lease = ids.LeaseID(c.varint())
		case resultsTag:
			r, raw := elem(&c, &m.Results), c.bytes()
			d.enter(raw, alias && 2*len(raw) >= len(b)) // each lives as long as it is needed, and keeps no other's bytes
			readResult(d, raw, r)
		case 5<<3 | wtVarint:
			m.Items = c.uint32()
		case 6<<3 | wtBytes:
			d.enter(b, alias)
			m.Err = readError(d, c.bytes())
		case 7<<3 | wtBytes:
			readTimes(d, c.bytes(), &m.Times)
		case 8<<3 | wtVarint:
			m.Final = c.bool()
		case 9<<3 | wtVarint:
			m.StillRuns = c.bool()
		case 10<<3 | wtVarint:
			m.Broke = c.bool()
		default:
			c.skip()
		}
	}
	return m
}

func readTimes(d *Decoder, b []byte, t *Times) {
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtFixed64:
			t.Received = int64(c.fixed64())
		case 2<<3 | wtFixed64:
			t.Started = int64(c.fixed64())
		case 3<<3 | wtFixed64:
			t.Ended = int64(c.fixed64())
		default:
			c.skip()
		}
	}
}
