package shell

import (
	"bytes"
	"context"
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	logEvery   = 10 * time.Second // between two records of a kind
	maxLogKind = 256              // kinds that are told apart
)

// logs turns what memberlist prints into records, a level lower than it says: a packet that is lost is an error for memberlist and a matter of course here.
// Of each kind there is one record in ten seconds, with the number of those left out.
type logs struct {
	to      *slog.Logger
	now     func() time.Time
	refused func()
	hears   func(text string) // is told each line

	mu    sync.Mutex
	kinds map[string]*logKind // guarded by mu
}

// logKind is the lines that differ only in names, addresses and numbers.
type logKind struct {
	last time.Time
	left int
}

func newLogs(to *slog.Logger, refused func(), hears func(text string)) *logs {
	return &logs{to: to.With("lib", "memberlist"), now: time.Now, refused: refused, hears: hears, kinds: make(map[string]*logKind)}
}

// logger is what memberlist prints to.
func (l *logs) logger() *log.Logger { return log.New(l, "", 0) }

// garbage begins the lines that memberlist prints when it drops what it was sent and cannot read. It has no other way to tell.
var garbage = []string{
	"cannot decode label", "label header cannot be empty", "failed to receive", "discarding", "unexpected double", "Decrypt packet failed",
	"Got invalid checksum", "missing message type", "Failed to decode", "Failed to decompress", "msg type", "Received invalid msgType", "Message type",
	"Failed to read remote state", "Failed to receive user message", "Compound request had", "UDP packet too short",
}

// Write takes a line of memberlist's.
func (l *logs) Write(line []byte) (int, error) {
	level, text := parse(string(bytes.TrimSpace(line)))
	l.hears(text)
	for _, begin := range garbage {
		if strings.HasPrefix(text, begin) {
			l.refused()
			break
		}
	}
	if !l.to.Enabled(context.Background(), level) {
		return len(line), nil
	}
	if left, ok := l.pass(text); ok {
		l.to.Log(context.Background(), level, text, "left_out", left)
	}
	return len(line), nil
}

// pass tells whether a line becomes a record, and how many of its kind did not since the last one.
func (l *logs) pass(text string) (left int, ok bool) {
	kind := text
	if i := strings.IndexAny(text, ":0123456789'\""); i > 0 {
		kind = text[:i]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[kind]
	if k == nil {
		if len(l.kinds) >= maxLogKind {
			kind = ""
			k = l.kinds[kind]
		}
		if k == nil {
			k = &logKind{}
			l.kinds[kind] = k
		}
	}
	now := l.now()
	if !k.last.IsZero() && now.Sub(k.last) < logEvery {
		k.left++
		return 0, false
	}
	left, k.last, k.left = k.left, now, 0
	return left, true
}

// parse takes "[LEVEL] memberlist: text" apart.
func parse(line string) (slog.Level, string) {
	level := slog.LevelDebug
	if word, rest, ok := strings.Cut(line, "] "); ok && strings.HasPrefix(word, "[") {
		line = rest
		switch word[1:] {
		case "WARN":
			level = slog.LevelInfo
		case "ERR", "ERROR":
			level = slog.LevelWarn
		}
	}
	return level, strings.TrimPrefix(line, "memberlist: ")
}
