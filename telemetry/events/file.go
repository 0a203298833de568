package events

import (
	"context"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"mobula/raylet/owner/task"
	"mobula/wire"
)

// File writes a recorder's events as they come, one JSON object per line.
type File struct {
	r       *Recorder
	w       io.Writer
	every   time.Duration
	most    int // events per turn, so that writing never costs much
	next    uint64
	buf     []byte
	turns   uint64
	unfiled atomic.Uint64
	failed  func(error)
}

const (
	fileEvery = 250 * time.Millisecond
	fileMost  = 10_000 // per turn: 40,000 a second, some 1 % of a CPU
	fileChunk = 64 << 10
)

// NewFile makes the writer of files: w is one that rotates. failed, which may be nil, is called for each turn that
// could not write; the events of that turn are counted as unfiled.
func NewFile(r *Recorder, w io.Writer, failed func(error)) *File {
	return &File{r: r, w: w, every: fileEvery, most: fileMost, failed: failed}
}

// Run writes until ctx ends, and then writes the rest. While nothing is recorded it sleeps.
func (f *File) Run(ctx context.Context) {
	t := time.NewTimer(f.every)
	defer t.Stop()
	for over := false; !over; over = ctx.Err() != nil {
		select {
		case <-f.r.more:
			t.Reset(f.every)
			select {
			case <-t.C:
			case <-ctx.Done():
			}
		case <-ctx.Done():
		}
		f.turn()
	}
}

// Unfiled counts recorded events that were not written.
func (f *File) Unfiled() uint64 { return f.unfiled.Load() }

func (f *File) turn() {
	f.turns++
	parts, next, lost := f.r.Since(f.next)
	f.unfiled.Add(lost)
	f.next = next
	left := f.most
	for _, p := range parts {
		for i := range p {
			if left--; left < 0 {
				f.unfiled.Add(1)
				continue
			}
			f.buf = appendEvent(f.buf, &p[i])
			if len(f.buf) >= fileChunk {
				f.flush()
			}
		}
	}
	f.flush()
}

// flush writes whole lines.
func (f *File) flush() {
	if len(f.buf) == 0 {
		return
	}
	if _, err := f.w.Write(f.buf); err != nil {
		lines := uint64(0)
		for _, c := range f.buf {
			if c == '\n' {
				lines++
			}
		}
		f.unfiled.Add(lines)
		if f.failed != nil {
			f.failed(err)
		}
	}
	f.buf = f.buf[:0]
}

// appendEvent adds the event as a line of JSON. Names are those of state.Task.
func appendEvent(b []byte, e *Event) []byte {
	b = append(b, `{"at":`...)
	b = strconv.AppendInt(b, e.At, 10)
	b = append(b, `,"id":"`...)
	b = appendHex(b, e.Task[:])
	b = append(b, `","state":"`...)
	b = append(b, e.State.String()...)
	b = append(b, `","func":`...)
	b = appendString(b, e.Opts.Func)
	b = append(b, `,"kind":"`...)
	b = append(b, KindName(e.Kind)...)
	b = append(b, `","attempt":`...)
	b = strconv.AppendUint(b, uint64(e.Attempt), 10)
	if e.Worker != 0 {
		b = append(b, `,"worker":"`...)
		b = strconv.AppendUint(b, uint64(e.Worker), 10)
		b = append(b, `","lease":`...)
		b = strconv.AppendUint(b, uint64(e.Lease), 10)
	}
	if e.Ended != 0 && e.State == task.Running {
		b = append(b, `,"started":`...)
		b = strconv.AppendInt(b, e.Started, 10)
		b = append(b, `,"ended":`...)
		b = strconv.AppendInt(b, e.Ended, 10)
	}
	if e.Reason != nil {
		b = append(b, `,"reason":`...)
		b = appendString(b, e.Reason.Error())
	}
	return append(b, "}\n"...)
}

// KindName is the kind of a task as lists show it.
func KindName(k wire.TaskKind) string {
	switch k {
	case wire.TaskActorCreate:
		return "actor-creation"
	case wire.TaskActorCall:
		return "actor-call"
	}
	return "task"
}

const hexDigits = "0123456789abcdef"

func appendHex(b, id []byte) []byte {
	for _, c := range id {
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

// appendString adds a JSON string. Messages may hold anything, of any length.
func appendString(b []byte, s string) []byte {
	const most = 2 << 10
	if len(s) > most {
		s = s[:most]
	}
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < ' ' || r == 0x2028 || r == 0x2029:
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			b = append(b, string(r)...) // an invalid byte becomes U+FFFD
		}
	}
	return append(b, '"')
}
