package shell

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
)

// told is a heartbeat as a server hears it, from a home.
func told(t *testing.T, from ids.Home, b gcs.Heartbeat) *nats.Msg {
	t.Helper()
	data, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return &nats.Msg{Subject: requests(from, "beat"), Data: data}
}

// A server believes a heartbeat of the home that sent it, and no other.
func TestAHeartbeatIsOfItsSender(t *testing.T) {
	g := &gathering{beats: gcs.NewHeartbeats()}
	g.hear(told(t, 2, gcs.Heartbeat{2, 1, 5}))
	g.hear(told(t, 2, gcs.Heartbeat{3, 1, 5}))
	g.hear(told(t, 2, gcs.Heartbeat{1<<32 + 2, 1, 5}))
	g.hear(&nats.Msg{Subject: requests(4, "beat"), Data: []byte("{}")})
	if all := g.beats.Take(); !slices.Equal(all, []gcs.Heartbeat{{2, 1, 5}}) {
		t.Errorf("it believes %v", all)
	}
}

// slowTables answer a write only when they are let.
type slowTables struct {
	*Memory
	let  chan struct{}
	rows [][]gcs.Heartbeat
}

func (s *slowTables) Do(ctx context.Context, e gcs.Effect) gcs.Answered {
	s.rows = append(s.rows, e.(gcs.Write).Record.(gcs.BeatsRecord).Beats)
	select {
	case <-s.let:
	case <-ctx.Done():
	}
	return s.Memory.Do(ctx, e)
}

// A server writes what it has heard once a second, together. While the tables keep it waiting it hears on, and then writes what is the last of each node.
func TestAServerHearsOnWhileItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		tables := &slowTables{Memory: NewMemory(), let: make(chan struct{})}
		g := &gathering{tables: tables, server: "a", heard: make(chan *nats.Msg, 2), beats: gcs.NewHeartbeats()}
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.run(ctx)
		}()
		g.heard <- told(t, 2, gcs.Heartbeat{2, 1, 1})
		g.add(gcs.Heartbeat{1, 1, 1})
		time.Sleep(gcs.GatherEvery + time.Millisecond)
		for number := range uint64(10) { // more than have room
			g.heard <- told(t, 2, gcs.Heartbeat{2, 1, 2 + number})
			g.heard <- told(t, 3, gcs.Heartbeat{3, 1, 2 + number})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(tables.rows) != 1 {
			t.Errorf("before an answer it writes %v", tables.rows)
		}
		close(tables.let)
		time.Sleep(3 * gcs.GatherEvery)
		synctest.Wait()
		want := [][]gcs.Heartbeat{{{1, 1, 1}, {2, 1, 1}}, {{2, 1, 11}, {3, 1, 11}}}
		if !slices.EqualFunc(tables.rows, want, slices.Equal) {
			t.Errorf("it writes %v, want %v", tables.rows, want)
		}
		stop()
		<-done
	})
}

// A node of a cluster writes its row once, and its heartbeats reach the servers and the other nodes. A row that is lost is written again.
func TestHeartbeatsReachAll(t *testing.T) {
	c := newCluster(t)
	var mu sync.Mutex
	beats := make(map[[2]ids.Home]uint64) // heard by the first, of the second
	hears := func(home ids.Home) func(*Config) {
		return func(cfg *Config) {
			cfg.Heard = func(r gcs.NodeRecord) {
				mu.Lock()
				defer mu.Unlock()
				beats[[2]ids.Home{home, r.Home}] = r.Beats
			}
		}
	}
	s := c.server(1, hears(1))
	nodes := []*testNode{s, c.node(trust.Data, 2, hears(2)), c.node(trust.Data, 3, hears(3))}
	for i, n := range nodes {
		home := ids.Home(i + 1)
		c.begin(s.GCS, home)
		n.Announce(gcs.NodeRecord{Home: home, Epoch: 1, Name: "n" + home.String()}, time.Second)
	}
	all := func(least uint64) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for by := range ids.Home(3) {
				for of := range ids.Home(3) {
					if beats[[2]ids.Home{by + 1, of + 1}] < least {
						return false
					}
				}
			}
			return true
		}
	}
	testkit.Eventually(t, "all hear each other", all(4))
	row := func() gcs.NodeRecord {
		a := s.tables.Do(t.Context(), gcs.Read{Bucket: gcs.Nodes, Key: "2"})
		r, _ := a.Record.(gcs.NodeRecord)
		return r
	}
	if r := row(); r.Beats == 0 || r.Beats > 3 {
		t.Errorf("the row was written with the heartbeat %d, and others since are no writes of it", r.Beats)
	}
	if a := s.tables.Do(t.Context(), gcs.Delete{Bucket: gcs.Nodes, Key: "2", Revision: -1}); a.Err != nil {
		t.Fatal(a.Err)
	}
	testkit.Eventually(t, "the row is there again", func() bool { return row().Beats > 3 })
}
