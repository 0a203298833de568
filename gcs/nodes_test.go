package gcs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"mobula/actors"
	"mobula/gcs/gcstest"
	"mobula/internal/errs"
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

// A node says so often that it lives, one write at a time; one of which nothing is heard any more is silent, by the clock of who listens.
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
	c.Step(int64(20*every), Changed{Bucket: Nodes, Key: other.Key()})
	if rows := listed(t, c, 21*every); len(rows) != 1 {
		t.Errorf("one that has left is there: %+v", rows)
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

// A control plane that runs on the tables of this process is the same to who asks.
func TestAControlPlaneOnMemory(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tables := NewMemory()
	for life := range 2 {
		sys := actors.NewSystem(actors.Config{})
		g, err := Start(sys, Config{Tables: tables, Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Call(ctx, Claim{actor("hits", "a")}); err != nil {
			t.Errorf("life %d: %v", life, err)
		}
		if _, err := g.Call(ctx, Claim{actor("hits", "b")}); !errors.Is(err, errs.ErrNameTaken) {
			t.Errorf("life %d: %v", life, err)
		}
		stopTest(t, sys)
	}
}

// Two nodes that use one server see each other, and names are theirs together. One that stops leaves the table at once.
func TestNodesShareAServer(t *testing.T) {
	url := gcstest.Server(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	join := func(h ids.Home, name string) (*actors.System, *GCS) {
		t.Helper()
		sys := actors.NewSystem(actors.Config{})
		g, err := Start(sys, Config{Servers: []string{url}, Node: name})
		if err != nil {
			t.Fatal(err)
		}
		g.Announce(nodeRecord(h, name), 20*time.Millisecond)
		return sys, g
	}
	sysA, a := join(1, "a")
	defer stopTest(t, sysA)
	sysB, b := join(2, "b")
	sees := func(what string, is func([]Record) bool) {
		t.Helper()
		for {
			rows, err := a.Call(ctx, List{Nodes})
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if is(rows) {
				return
			}
		}
	}
	sees("both beat", func(rows []Record) bool {
		return len(rows) == 2 && rows[0].(NodeRecord).Beats > 2 && rows[1].(NodeRecord).Beats > 2 && !rows[1].(NodeRecord).Silent
	})
	if _, err := a.Call(ctx, Claim{actor("hits", "a")}); err != nil {
		t.Error(err)
	}
	if _, err := b.Call(ctx, Claim{actor("hits", "b")}); !errors.Is(err, errs.ErrNameTaken) {
		t.Errorf("the other node's name: %v", err)
	}
	stopTest(t, sysB)
	sees("one has left", func(rows []Record) bool { return len(rows) == 1 })
}

// A server without JetStream can keep no tables.
func TestAServerWithoutJetStream(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer stopTest(t, sys)
	_, err := Start(sys, Config{Servers: []string{gcstest.Start(t, &server.Options{})}, Node: "n1"})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Errorf("got %v", err)
	}
}

// Servers that are not there are named, without their passwords.
func TestServersThatAreNotThere(t *testing.T) {
	sys := actors.NewSystem(actors.Config{})
	defer stopTest(t, sys)
	_, err := Start(sys, Config{Servers: []string{"nats://me:secret@127.0.0.1:1"}, Node: "n1"})
	if !errors.Is(err, errs.ErrComponentFailed) {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "me:xxxxx@127.0.0.1:1") || strings.Contains(text, "secret") {
		t.Errorf("it says %q", text)
	}
}
