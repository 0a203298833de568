package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"mobula/internal/state"
)

// followEvery is how often it is looked for more of a log.
const followEvery = 500 * time.Millisecond

// followed is what was shown of the streams of a log, each by its node, worker and name.
type followed struct {
	seen map[[3]string]state.LogStream
	last [3]string         // whose text was printed last
	half bool              // and did not end its line
	lack map[string]string // the nodes that do not answer, and why
}

func newFollowed() *followed {
	return &followed{seen: make(map[[3]string]state.LogStream)}
}

// followLogs prints what is written to a log from its end on, until the command is interrupted, which is not an error.
func (a *app) followLogs(r state.LogsRequest) error {
	f := newFollowed()
	return again(a.ctx, followEvery, func() error {
		l, err := request[state.Logs](a, state.MethodLogs, r)
		if err != nil {
			return err
		}
		more := f.more(there(l.Streams))
		if len(more) > 0 {
			err = a.print(state.Logs{Streams: more}, func(w io.Writer) { f.text(w, more) })
		}
		a.warn(a.errOut, f.lacks(notThere(l.Streams)))
		return err
	})
}

// more gives the streams of which there is more, with only that. Omitted is what was written meanwhile and is not in the answer.
func (f *followed) more(streams []state.LogStream) (more []state.LogStream) {
	for _, s := range streams {
		key := [3]string{s.Node, s.Worker, s.Stream}
		was, shown := f.seen[key]
		f.seen[key] = s
		if !shown {
			more = append(more, s)
			continue
		}
		grown := s.Size - was.Size
		switch rest, longer := strings.CutPrefix(s.Text, was.Text); {
		case longer:
			s.Text, s.Omitted = rest, 0
		case grown > int64(len(s.Text)):
			s.Omitted = grown - int64(len(s.Text))
		case grown > 0:
			s.Text, s.Omitted = s.Text[len(s.Text)-int(grown):], 0
		default: // older parts were removed
			continue
		}
		if s.Text != "" {
			more = append(more, s)
		}
	}
	return more
}

// text prints what there is more, each stream's under its head.
func (f *followed) text(w io.Writer, more []state.LogStream) {
	for _, s := range more {
		if key := [3]string{s.Node, s.Worker, s.Stream}; key != f.last {
			if f.half {
				fmt.Fprintln(w)
			}
			logHead(w, s)
			f.last = key
		}
		if s.Omitted > 0 {
			fmt.Fprintf(w, "== %s before this are left out\n", size(uint64(s.Omitted)))
		}
		fmt.Fprint(w, still(s.Text))
		f.half = !strings.HasSuffix(s.Text, "\n")
	}
}

// lacks are the nodes of which it is news that they do not answer.
func (f *followed) lacks(missing []state.Unreachable) (news []state.Unreachable) {
	now := make(map[string]string)
	for _, m := range missing {
		if now[m.Node] = m.Why; f.lack[m.Node] != m.Why {
			news = append(news, m)
		}
	}
	f.lack = now
	return news
}
