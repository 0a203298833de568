package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"mobula/gcs"
	"mobula/internal/ids"
)

// listener is a follower without a connection, and what it has told.
type listener struct {
	follower
	part *partial
	said []string
}

func newListener() *listener {
	l := &listener{follower: follower{told: make(map[rowKey]uint64), seen: make(map[gcs.Bucket]uint64), rows: make(map[string]gcs.NodeRecord), wrote: &wrote{}}}
	l.changed = func(c gcs.Changed) {
		what := "gone"
		if c.Record != nil {
			what = c.Record.(gcs.NodeRecord).Name
			if beats := c.Record.(gcs.NodeRecord).Beats; beats > 0 {
				what += fmt.Sprint(" beat ", beats)
			}
		}
		l.said = append(l.said, fmt.Sprintf("%s %s@%d", c.Key, what, c.Revision))
	}
	return l
}

// nodeRow is a row of the table of nodes; without a name it was removed.
func nodeRow(t *testing.T, key string, revision uint64, name string) feedRow {
	t.Helper()
	r := feedRow{Bucket: gcs.Nodes, Key: key, Revision: revision}
	if name != "" {
		var err error
		if r.Record, err = json.Marshal(gcs.NodeRecord{Home: homeOf(t, key), Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// homeOf is the home that a key names.
func homeOf(t *testing.T, key string) ids.Home {
	t.Helper()
	n, err := strconv.ParseUint(key, 10, ids.HomeBits)
	if err != nil {
		t.Fatal(err)
	}
	return ids.Home(n)
}

// connect has it ask a server for the rows.
func (l *listener) connect() { l.part = &partial{} }

func (l *listener) rows(rows ...feedRow) error { return l.hear(feedMsg{Rows: rows}, true, l.part) }

func (l *listener) last(run string, number, upto uint64) error { return l.lastAt(run, number, upto, 0) }

// lastAt is the end of a snapshot, with the revisions of the tables of nodes and of heartbeats.
func (l *listener) lastAt(run string, number, nodes, beats uint64) error {
	return l.hear(feedMsg{Run: run, Number: number, Last: true, Upto: map[gcs.Bucket]uint64{gcs.Nodes: nodes, gcs.Beats: beats}}, true, l.part)
}

func (l *listener) change(run string, number uint64, rows ...feedRow) error {
	return l.hear(feedMsg{Run: run, Number: number, Rows: rows}, false, l.part)
}

// beats are heartbeats of nodes, up to a revision of their table.
func (l *listener) beats(run string, number, upto uint64, beats ...gcs.Heartbeat) error {
	return l.hear(feedMsg{Run: run, Number: number, Beats: beats, Upto: map[gcs.Bucket]uint64{gcs.Beats: upto}}, false, l.part)
}

// A node is told all rows and each change once, in order, whatever it misses and to whichever server it is connected.
func TestFollowing(t *testing.T) {
	l := newListener()
	row := func(key string, revision uint64, name string) feedRow { return nodeRow(t, key, revision, name) }
	want := func(what string, said ...string) {
		t.Helper()
		if !slices.Equal(l.said, said) {
			t.Errorf("%s it tells %q, want %q", what, l.said, said)
		}
		l.said = nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	l.connect()
	must(l.change("a", 4, row("1", 4, "old")))
	must(l.change("a", 5, row("3", 6, "n3")))
	must(l.rows(row("1", 4, "old"), row("2", 5, "n2")))
	must(l.last("a", 4, 5))
	want("of a snapshot and what came meanwhile", "1 old@4", "2 n2@5", "3 n3@6")
	l.silence = feedSilenceMax
	must(l.change("a", 5)) // it lives
	if l.silence != feedSilenceMax {
		t.Error("a server that shows no change is believed to have the tables")
	}
	must(l.change("a", 6, row("1", 7, "new"), row("2", 8, "")))
	want("of changes", "1 new@7", "2 gone@8")
	if l.silence != feedSilence {
		t.Errorf("a server that shows changes may be silent for %v", l.silence)
	}

	if err := l.change("a", 8, row("4", 10, "n4")); !errors.Is(err, errMissed) {
		t.Errorf("a message is missing, and it says %v", err)
	}
	if err := l.change("a", 7); !errors.Is(err, errMissed) {
		t.Errorf("the last message is missing, and it says %v", err)
	}
	if err := l.change("b", 7, row("4", 10, "n4")); !errors.Is(err, errMissed) {
		t.Errorf("the feed has begun again, and it says %v", err)
	}
	want("then")

	l.connect() // to another server, which is behind
	must(l.rows(row("1", 4, "old"), row("2", 5, "n2")))
	if err := l.last("c", 1, 6); !errors.Is(err, errMissed) {
		t.Errorf("a server that is behind: %v", err)
	}
	want("of a server that is behind")
	l.connect() // and then not
	must(l.rows(row("1", 9, "newer"), row("4", 10, "n4")))
	must(l.last("c", 2, 10))
	want("of what it has missed", "1 newer@9", "4 n4@10", "3 gone@6")

	l.wrote.note(gcs.Nodes, 11) // by this node, and acknowledged
	l.connect()
	if err := l.last("c", 2, 10); !errors.Is(err, errMissed) {
		t.Errorf("a server that does not know yet what this node has written: %v", err)
	}
	l.wrote.last[gcs.Nodes] = written{11, time.Now().Add(-2 * wroteFor)} // and removed and forgotten since
	must(l.rows(row("1", 9, "newer"), row("4", 10, "n4")))
	must(l.last("c", 2, 10))
	want("in the end")
}

// Heartbeats are told as rows that are otherwise as they were, once each.
func TestFollowingHeartbeats(t *testing.T) {
	l := newListener()
	l.connect()
	for _, err := range []error{
		l.rows(nodeRow(t, "1", 7, "n1"), nodeRow(t, "2", 8, "n2")),
		l.beats("a", 4, 20, gcs.Heartbeat{1, 0, 2}), // it is in the snapshot
		l.lastAt("a", 4, 8, 20),
		l.beats("a", 5, 21, gcs.Heartbeat{1, 0, 3}, gcs.Heartbeat{4, 0, 1}), // the second is of a node that is not known
		l.change("a", 6, nodeRow(t, "2", 12, "")),
		l.beats("a", 7, 22, gcs.Heartbeat{2, 0, 5}, gcs.Heartbeat{1, 0, 3}, gcs.Heartbeat{1, 0, 4}, gcs.Heartbeat{1, 1, 5}), // and the last of a life that is not
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := []string{"1 n1@7", "2 n2@8", "1 n1 beat 3@7", "2 gone@12", "1 n1 beat 4@7"}
	if !slices.Equal(l.said, want) {
		t.Errorf("it tells %q, want %q", l.said, want)
	}
	if err := l.beats("a", 9, 24, gcs.Heartbeat{1, 0, 6}); !errors.Is(err, errMissed) {
		t.Errorf("a message is missing, and it says %v", err)
	}
	l.connect() // to another server, where nothing has changed but heartbeats
	if err := l.lastAt("b", 1, 12, 21); !errors.Is(err, errMissed) {
		t.Errorf("a server that is behind: %v", err)
	}
	if err := l.lastAt("b", 1, 12, 22); err != nil {
		t.Error(err)
	}
}
