package wired

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"mobula/internal/direct/shell"
	"mobula/internal/errs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/wire"
)

// frames are messages as they go over the socket.
func frames(t testing.TB, msgs ...wire.Msg) (b []byte) {
	t.Helper()
	w := wire.NewFrameWriter(0)
	for _, m := range msgs {
		var f *os.File
		if m == paged {
			f = os.Stdin // which says that one comes with it
		}
		if err := w.Add(m, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range w.Parts(nil) {
		b = append(b, p.Data...)
	}
	return b
}

var hello = &wire.OpenChannel{Version: wire.ChannelVersion, Channel: 1}

// paged is the same of the actor's side: the page comes with it.
var paged = &wire.OpenChannel{Version: wire.ChannelVersion, Channel: 1}

func aCall(no uint64, method uint32) *wire.Call {
	return &wire.Call{No: no, Method: method, Spec: &wire.TaskSpec{ID: ids.RootTask(1, no), Seq: no, Args: []wire.Arg{{Value: wire.Value{Data: []byte("x")}}}}}
}

// toHost writes bytes to a host's end, and gives why that has ended.
func toHost(t testing.TB, b []byte) error {
	t.Helper()
	h := newHosts(t, []int{1}, echo)
	defer h.box.Close()
	from, to := made(t)
	x := h.open(to, 1)
	write(t, from, b)
	ended(t, "the host's end", x.Done())
	return x.Why()
}

// write writes bytes as the other end does, reads what comes, and closes.
func write(t testing.TB, e *os.File, b []byte, with ...int) {
	t.Helper()
	defer func() { _ = e.Close() }()
	for len(b) > 0 {
		var rights []byte
		if with != nil {
			rights, with = unix.UnixRights(with...), nil
		}
		n, err := unix.SendmsgN(int(e.Fd()), b, rights, nil, 0)
		if err != nil {
			if !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
				t.Error(err)
			}
			return // it was refused before
		}
		b = b[n:]
	}
	if err := unix.Shutdown(int(e.Fd()), unix.SHUT_WR); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, e) // until the other side has closed
}

// toCaller writes bytes to a caller's end on which so many calls are under way.
func toCaller(t testing.TB, b []byte, calls int) error {
	t.Helper()
	u := newCalls(t)
	from, to := made(t)
	var open []*asked
	for seq := range uint64(calls) {
		open = append(open, u.call(1, seq+1, nil))
	}
	x, err := OpenCall(from, u.p.Callee(theActor), shell.Way{Channel: 1, Credit: 1 << 20, Groups: []string{""}}, 1<<20, nil, shares)
	if err != nil {
		t.Fatal(err)
	}
	close(u.ways)
	page, err := makePage(1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = page.Close() }()
	write(t, to, b, int(page.Fd()))
	ended(t, "the caller's end", x.Done())
	for _, a := range open {
		a.get(t)
	}
	u.p.Close()
	return x.Why()
}

// What the other side may not say ends the channel, with the reason.
func TestWhatMayNotBeSaid(t *testing.T) {
	method := &wire.Method{Opts: theMethod}
	for what, c := range map[string]struct {
		want error
		msgs []wire.Msg
	}{
		"nothing":              {io.EOF, nil},
		"a call first":         {errs.ErrProtocol, []wire.Msg{aCall(1, 0)}},
		"another version":      {errs.ErrVersion, []wire.Msg{&wire.OpenChannel{Version: 2, Channel: 1}}},
		"another channel":      {errs.ErrProtocol, []wire.Msg{&wire.OpenChannel{Version: 1, Channel: 2}}},
		"hello twice":          {errs.ErrProtocol, []wire.Msg{hello, hello}},
		"a method without any": {errs.ErrProtocol, []wire.Msg{hello, &wire.Method{}}},
		"a method too far":     {errs.ErrProtocol, []wire.Msg{hello, &wire.Method{Number: 1, Opts: theMethod}}},
		"a method beyond all":  {errs.ErrProtocol, []wire.Msg{hello, &wire.Method{Number: 1 << 31, Opts: theMethod}}},
		"an unknown method":    {errs.ErrProtocol, []wire.Msg{hello, method, aCall(1, 1)}},
		"a call left out":      {errs.ErrProtocol, []wire.Msg{hello, method, aCall(1, 0), aCall(3, 0)}},
		"a call twice":         {errs.ErrProtocol, []wire.Msg{hello, method, aCall(1, 0), aCall(1, 0)}},
		"an answer":            {errs.ErrProtocol, []wire.Msg{hello, &wire.Answered{No: 1, AckNo: 1}}},
		"a message for a node": {errs.ErrProtocol, []wire.Msg{hello, &wire.Drain{}}},
		"what is not there":    {io.EOF, []wire.Msg{hello, &wire.Took{UpTo: 1 << 60}, &wire.Withdraw{No: 1 << 60}}},
		"a group beyond all":   {io.EOF, []wire.Msg{hello, method, &wire.Call{No: 1, Group: 1 << 31, Spec: &wire.TaskSpec{ID: ids.RootTask(1, 1)}}}},
		"what is all in order": {io.EOF, []wire.Msg{hello, method, aCall(1, 0), aCall(2, 0), &wire.Took{UpTo: 1}}},
		"a method said anew":   {io.EOF, []wire.Msg{hello, method, method, aCall(1, 0)}},
	} {
		if err := toHost(t, frames(t, c.msgs...)); !errors.Is(err, c.want) {
			t.Errorf("%s ends the host's end with %v, want %v", what, err, c.want)
		}
	}
	for what, c := range map[string]struct {
		want error
		msgs []wire.Msg
	}{
		"an answer first":       {errs.ErrProtocol, []wire.Msg{&wire.Answered{No: 1, AckNo: 1}}},
		"no page":               {errs.ErrProtocol, []wire.Msg{hello}},
		"a call":                {errs.ErrProtocol, []wire.Msg{paged, aCall(1, 0)}},
		"an answer left out":    {errs.ErrProtocol, []wire.Msg{paged, &wire.Answered{No: 1, AckNo: 2}}},
		"an answer to no call":  {errs.ErrProtocol, []wire.Msg{paged, &wire.Answered{No: 9, AckNo: 1}}},
		"an answer to number 0": {errs.ErrProtocol, []wire.Msg{paged, &wire.Answered{AckNo: 1}}},
		"more after the last":   {errs.ErrProtocol, []wire.Msg{paged, &wire.LastAnswer{}, &wire.Answered{No: 1, AckNo: 1}}},
		"two answers to a call": {io.EOF, []wire.Msg{paged, &wire.Answered{No: 1, AckNo: 1}, &wire.Answered{No: 1, AckNo: 2}}},
		"answers out of order":  {io.EOF, []wire.Msg{paged, &wire.Answered{No: 2, AckNo: 1}, &wire.Answered{No: 1, AckNo: 2, Said: wire.SaidBegun}, &wire.LastAnswer{}}},
	} {
		if err := toCaller(t, frames(t, c.msgs...), 2); !errors.Is(err, c.want) && (c.want != io.EOF || !errors.Is(err, errs.ErrShutdown)) { // it hangs up after the last answer
			t.Errorf("%s ends the caller's end with %v, want %v", what, err, c.want)
		}
	}
}

// Frames that are cut off, or of which bytes are others, end a channel with an error that says so, or are none the less messages.
func TestBrokenFrames(t *testing.T) {
	toH := frames(t, hello, &wire.Method{Opts: theMethod}, aCall(1, 0), &wire.Took{UpTo: 1}, &wire.Withdraw{No: 1, Unbegun: errs.New(errs.CodeDeadlock, "no")}, aCall(2, 0))
	toC := frames(t, paged, &wire.Answered{No: 1, AckNo: 1, Err: errs.New(errs.CodeTaskFailed, "no")}, &wire.Answered{No: 2, AckNo: 2, Results: []wire.Result{{Kind: wire.ResultInline}}}, &wire.LastAnswer{})
	check := func(what string, err error) {
		t.Helper()
		if err == nil || !errors.Is(err, io.EOF) && !errors.Is(err, errs.ErrProtocol) && !errors.Is(err, errs.ErrVersion) && !errors.Is(err, errs.ErrDisconnected) && !errors.Is(err, errs.ErrShutdown) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range toH {
		check("cut off", toHost(t, toH[:n]))
	}
	for n := range toC {
		check("cut off", toCaller(t, toC[:n], 2))
	}
	rnd := testkit.Rand(t)
	for range 300 {
		h, c := bytes.Clone(toH), bytes.Clone(toC)
		for range 1 + rnd.IntN(3) {
			h[rnd.IntN(len(h))], c[rnd.IntN(len(c))] = byte(rnd.IntN(256)), byte(rnd.IntN(256))
		}
		check("others", toHost(t, h))
		check("others", toCaller(t, c, 2))
	}
}

// FuzzHost has any messages come at the actor's end: no panic, and the end with a reason.
func FuzzHost(f *testing.F) {
	f.Add(frames(f, hello, &wire.Method{Opts: theMethod}, aCall(1, 0), &wire.Took{UpTo: 1}, &wire.Withdraw{No: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := toHost(t, b); err == nil {
			t.Error("it has ended without a reason")
		}
	})
}

// FuzzCaller is the same at the calling end.
func FuzzCaller(f *testing.F) {
	f.Add(frames(f, paged, &wire.Answered{No: 1, AckNo: 1}, &wire.Answered{No: 2, AckNo: 2, Said: wire.SaidWaits}, &wire.LastAnswer{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := toCaller(t, b, 2); err == nil {
			t.Error("it has ended without a reason")
		}
	})
}

// What is no end of a channel is not opened, and its file is closed.
func TestWhatIsNoEnd(t *testing.T) {
	h := newHosts(t, []int{1, 1}, echo)
	defer h.box.Close()
	plain, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenHost(plain, h.box, 1, func(*Host, *wire.Call) any { return nil }); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a file in place of the socket: %v", err)
	}
	if plain.Fd() != ^uintptr(0) {
		t.Error("it is open")
	}
}

// What is no page for begun calls is refused.
func TestWhatIsNoPage(t *testing.T) {
	plain, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openPage(plain, false); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a page that may shrink: %v", err)
	}
	for _, groups := range []int{0, groupsMax + 1} {
		if _, err := makePage(groups); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%d groups: %v", groups, err)
		}
	}
	f, err := makePage(2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := mapPage(f, true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.unmap()
	p.all[0] = 1 << 40
	if _, err := openPage(f, false); !errors.Is(err, errs.ErrInvalid) {
		t.Errorf("a page that says nonsense: %v", err)
	}
}
