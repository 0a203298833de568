package gcs

import (
	"errors"
	"testing"
	"time"

	"mobula/internal/ids"
)

func nodeRecord(h ids.Home, name string) NodeRecord {
	return NodeRecord{Home: h, Name: name, Resources: map[string]float64{"CPU": 4}}
}

// listed are the nodes as a core lists them at a time.
func listed(t *testing.T, c *Core, now time.Duration) []NodeRecord {
	t.Helper()
	var out []NodeRecord
	for _, e := range c.Step(int64(now), Request{99, List{Nodes}}) {
		for _, r := range e.(Reply).Records {
			out = append(out, r.(NodeRecord))
		}
	}
	return out
}

// A node sends heartbeats, one write at a time; a node that is no longer heard is silent, by the listener's clock.
func TestHeartbeats(t *testing.T) {
	const every = time.Second
	c := NewCore()
	out := c.Step(0, Announce{Record: nodeRecord(1, "me"), Every: every})
	for beat := range uint64(3) {
		w, ok := out[0].(Write)
		if !ok || len(out) != 1 || w.Record.(NodeRecord).Beats != beat+1 || w.Revision != -1 {
			t.Fatalf("beat %d is %+v", beat, out)
		}
		a := Answered{ID: w.ID, Wrote: true}
		if beat == 1 {
			a.Err = errors.New("the server is away")
		}
		out = c.Step(int64(every), a)
		if len(out) != 1 || out[0] != Effect(After{every, Beat{}}) {
			t.Fatalf("then %+v", out)
		}
		if again := c.Step(int64(every), a); len(again) != 0 {
			t.Fatalf("an answer that comes twice asks for %+v", again)
		}
		out = c.Step(int64(every), Beat{})
	}
	other := nodeRecord(2, "other")
	c.Step(int64(10*every), Changed{Bucket: Nodes, Key: other.Key(), Record: other})
	c.Step(int64(10*every), Changed{Bucket: Nodes, Key: "1", Record: nodeRecord(1, "me")})
	for _, at := range []struct {
		now    time.Duration
		silent bool
	}{{11 * every, false}, {13 * every, false}, {14 * every, true}} {
		rows := listed(t, c, at.now)
		if len(rows) != 2 || rows[0].Name != "me" || rows[0].Silent || rows[1].Silent != at.silent || rows[1].Heard != at.now-10*every {
			t.Errorf("after %v: %+v", at.now, rows)
		}
	}
	c.Step(int64(20*every), Changed{Bucket: Nodes, Key: other.Key(), Record: other})
	if rows := listed(t, c, 21*every); rows[1].Silent {
		t.Errorf("heard again it is %+v", rows[1])
	}
	c.Step(int64(30*every), Changed{Bucket: Nodes, Key: "1", Record: nodeRecord(1, "me")}) // its own came after 20 heartbeats: so may others
	if rows := listed(t, c, 60*every); rows[1].Silent {
		t.Errorf("heard not long ago as it is told of heartbeats, it is %+v", rows[1])
	}
	if rows := listed(t, c, 81*every); !rows[1].Silent {
		t.Errorf("not heard for long it is %+v", rows[1])
	}
	c.Step(int64(81*every), Changed{Bucket: Nodes, Key: other.Key()})
	if rows := listed(t, c, 81*every); len(rows) != 1 {
		t.Errorf("one that has left is there: %+v", rows)
	}
}

// A node to which its own heartbeats are not shown knows that the tables do not answer.
func TestTablesThatDoNotAnswerAreNoticed(t *testing.T) {
	const every = time.Second
	c := NewCore()
	c.Step(0, Announce{Record: nodeRecord(1, "me"), Every: every, Tells: true})
	c.Step(0, Changed{Bucket: Nodes, Key: "1", Record: nodeRecord(1, "me")})
	for _, at := range []struct {
		now     time.Duration
		unshown bool
	}{{3 * every, false}, {4 * every, true}} {
		if rows := listed(t, c, at.now); len(rows) != 1 || rows[0].Unshown != at.unshown || rows[0].Silent {
			t.Errorf("after %v: %+v", at.now, rows)
		}
	}
	c.Step(int64(5*every), Changed{Bucket: Nodes, Key: "1", Record: nodeRecord(1, "me")})
	if rows := listed(t, c, 6*every); rows[0].Unshown {
		t.Errorf("when they answer again: %+v", rows)
	}
}

// Rows that releases before 0.5 wrote for nobody are removed and not shown.
func TestNodesOfEarlierReleasesAreRemoved(t *testing.T) {
	c := NewCore()
	out := c.Step(0, Changed{Bucket: Nodes, Key: "host-77", Record: nodeRecord(0, "host-77")})
	if len(out) != 1 || out[0] != Effect(Delete{Bucket: Nodes, Key: "host-77", Revision: -1}) {
		t.Errorf("it asks for %+v", out)
	}
	if rows := listed(t, c, 0); len(rows) != 0 {
		t.Errorf("it shows %+v", rows)
	}
}
