package wire

import (
	"os"
	"unsafe"

	"mobula/internal/errs"
	"mobula/internal/ids"
)

// On a channel between a process that calls and one with the actor (package internal/direct), and nowhere else.

// ChannelVersion is that of what goes on a channel.
const ChannelVersion = 1

// Methods is how many Methods a channel has at once: their numbers are below it.
const Methods = 1 << 10

// OpenChannel is first, of either side. With that of the actor's side travels the descriptor of the page in which that counts what has begun.
type OpenChannel struct {
	Version uint32
	Channel uint64

	Opened *os.File // not encoded, as in MapFile
}

// Method is what calls with its number share from here on.
type Method struct {
	Number uint32
	Actor  ids.ActorID
	Opts   *TaskOptions
}

// Call is the next one. What its Method says is not sent of Spec: Kind, Opts and Actor, which are zero where it comes.
type Call struct {
	Spec   *TaskSpec
	No     uint64 // on its channel, from 1 on
	Method uint32
	Group  uint32 // the concurrency group
	Tries  uint32 // retries used
	Values []ArgValue
}

// Withdraw asks for the end of a call.
type Withdraw struct {
	No                       uint64
	Force, Recursive, Insist bool
	Unbegun                  *errs.Error // it ends with that if it has not begun, else it goes on; nil: it is cancelled
}

// Took says which answers were taken.
type Took struct{ UpTo uint64 }

// Said is what stands in place of a call's results when the instance has ended under it.
type Said uint8

// What is said.
const (
	SaidNothing Said = iota
	SaidWaits
	SaidBegun
	SaidCulprit
)

// Answered is what a call has come to. Where it ran is Worker and Lease, and when Times, if that is known.
type Answered struct {
	No      uint64 // the call's
	AckNo   uint64 // the answer's, from 1 on
	Said    Said
	Results []Result
	Err     *errs.Error
	Holds   bool   // references, until it is taken
	Bytes   uint64 // that it takes in its reader's process
	Worker  ids.ClientID
	Lease   ids.LeaseID
	Times   Times
	Items   uint32 // of a stream, of which the owner was told
}

// LastAnswer says that nothing follows.
type LastAnswer struct{}

// Share asks, from the actor's end, that the owner is told of a call before its result is stored: Shared answers.
type Share struct{ No uint64 }

// Shared says that the owner knows of a call, or why it cannot.
type Shared struct {
	No  uint64
	Err *errs.Error
}

func writeCall(e *encoder, m *Call) {
	if m.Spec == nil {
		e.bad = errs.New(errs.CodeInvalid, "a call without a spec")
		return
	}
	at, ext := e.open(1)
	writeSpecAlone(e, m.Spec)
	e.close(at, ext)
	e.uint(2, m.No)
	e.uint(3, uint64(m.Method))
	e.uint(4, uint64(m.Group))
	e.uint(5, uint64(m.Tries))
	for i := range m.Values {
		nestArgValue(e, 6, &m.Values[i])
	}
}

// callArgs is a Call, its spec and a few arguments in one allocation.
type callArgs struct {
	m Call
	specArgs
}

// callBox is a Call and its spec in one allocation.
type callBox struct {
	m Call
	s TaskSpec
}

func readCall(d *Decoder, b []byte) Msg {
	var m *Call
	if n := countTag(firstBytes(b), argsTag); n == 0 || n > len(specArgs{}.args) {
		box := new(callBox)
		m, box.m.Spec = &box.m, &box.s
	} else {
		box := new(callArgs)
		m, box.m.Spec = &box.m, &box.spec
		box.spec.Args = box.args[:0]
	}
	d.room(b, 1, int(unsafe.Sizeof(callArgs{})))
	has := false
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtBytes:
			has = true
			readSpecFields(d, c.bytes(), m.Spec)
		case 2<<3 | wtVarint:
			m.No = c.varint()
		case 3<<3 | wtVarint:
			m.Method = c.uint32()
		case 4<<3 | wtVarint:
			m.Group = c.uint32()
		case 5<<3 | wtVarint:
			m.Tries = c.uint32()
		case 6<<3 | wtBytes:
			a := elem(&c, &m.Values)
			readArgValue(d, c.bytes(), a)
		default:
			c.skip()
		}
	}
	s := m.Spec
	switch {
	case !has:
		d.malformed(b[len(b):], "a call without a spec")
	case s.Opts != nil || s.Kind != 0 || s.Actor != (ids.ActorID{}):
		d.malformed(b[len(b):], "a call that says itself what its method does")
	}
	d.argsFit(b, s, m.Values)
	if len(s.Args) == 0 {
		s.Args = nil
	}
	return m
}

// firstBytes is the value of the first field, if it is one with a length.
func firstBytes(b []byte) []byte {
	if len(b) == 0 || b[0]&7 != wtBytes {
		return nil
	}
	_, body, _, err := Cut(b, b)
	if err != nil {
		return nil
	}
	return body
}

func writeAnswered(e *encoder, m *Answered) {
	e.uint(1, m.No)
	e.uint(2, m.AckNo)
	e.uint(3, uint64(m.Said))
	for i := range m.Results {
		nestResult(e, 4, &m.Results[i])
	}
	nestError(e, 5, m.Err)
	e.bool(6, m.Holds)
	e.uint(7, m.Bytes)
	e.uint(8, uint64(m.Worker))
	e.uint(9, uint64(m.Lease))
	nestTimes(e, 10, &m.Times)
	e.uint(11, uint64(m.Items))
}

// answeredResult is an Answered and the one result that most have in one allocation.
type answeredResult struct {
	m Answered
	r [1]Result
}

func readAnswered(d *Decoder, b []byte) Msg {
	var m *Answered
	if countTag(b, resultsTag) == 1 {
		box := new(answeredResult)
		m, box.m.Results = &box.m, box.r[:0]
	} else {
		m = new(Answered)
	}
	c := cursor{b: b, d: d}
	for c.next() {
		switch c.tag {
		case 1<<3 | wtVarint:
			m.No = c.varint()
		case 2<<3 | wtVarint:
			m.AckNo = c.varint()
		case 3<<3 | wtVarint:
			m.Said = Said(c.enum(uint8(SaidCulprit)))
		case resultsTag:
			r := elem(&c, &m.Results)
			readResult(d, c.bytes(), r)
		case 5<<3 | wtBytes:
			m.Err = readError(d, c.bytes())
		case 6<<3 | wtVarint:
			m.Holds = c.bool()
		case 7<<3 | wtVarint:
			m.Bytes = c.varint()
		case 8<<3 | wtVarint:
			m.Worker = ids.ClientID(c.varint())
		case 9<<3 | wtVarint:
			m.Lease = ids.LeaseID(c.varint())
		case 10<<3 | wtBytes:
			readTimes(d, c.bytes(), &m.Times)
		case 11<<3 | wtVarint:
			m.Items = c.uint32()
		default:
			c.skip()
		}
	}
	return m
}
