package shell

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"mobula/gcs"
)

// gathering hears the heartbeats of the nodes that are connected to this server, and of the server itself, and writes them together: one row, however many nodes
// there are. As long as a write waits for the tables, it hears on.
type gathering struct {
	tables Tables
	server string
	heard  chan *nats.Msg // nobody wakes for one

	mu    sync.Mutex
	beats *gcs.Heartbeats // guarded by mu
}

// heartbeatsRoom is how many may come between two looks. Those beyond it are dropped, and the next ones follow within a second.
const heartbeatsRoom = 1 << 15

// gather begins to hear heartbeats. One server hears each, the one that the node is connected to if it can.
func gather(nc *nats.Conn, tables Tables, server string) (*gathering, error) {
	g := &gathering{tables: tables, server: server, heard: make(chan *nats.Msg, heartbeatsRoom), beats: gcs.NewHeartbeats()}
	_, err := nc.ChanQueueSubscribe(requestsOfAll("beat"), ServiceName, g.heard) // it ends with the connection
	return g, err
}

// run writes what was heard, until the context ends.
func (g *gathering) run(ctx context.Context) {
	tick := time.NewTicker(gcs.GatherEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.listen(nil)
		}
		g.mu.Lock()
		all := g.beats.Take()
		g.mu.Unlock()
		if len(all) == 0 {
			continue
		}
		written := make(chan struct{})
		go func() {
			defer close(written)
			g.tables.Do(ctx, gcs.Write{Record: gcs.BeatsRecord{Server: g.server, Beats: all}, Revision: -1}) // what is not written is followed by later ones
		}()
		g.listen(written)
	}
}

// listen takes what has come, and what comes until then; nil: no more than that.
func (g *gathering) listen(until <-chan struct{}) {
	for {
		select {
		case m := <-g.heard:
			g.hear(m)
			continue
		default:
		}
		if until == nil {
			return
		}
		select {
		case m := <-g.heard:
			g.hear(m)
		case <-until:
			return
		}
	}
}

// hear takes a heartbeat, if it is of the home that its subject has.
func (g *gathering) hear(m *nats.Msg) {
	var b gcs.Heartbeat
	if err := json.Unmarshal(m.Data, &b); err == nil && strconv.FormatUint(b[0], 10) == asker(m.Subject) {
		g.add(b)
	}
}

func (g *gathering) add(b gcs.Heartbeat) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.beats.Add(b)
}

// tellBeat has a server hear a heartbeat of this node.
func (g *GCS) tellBeat(b gcs.Heartbeat) {
	if g.gathering != nil {
		g.gathering.add(b)
		return
	}
	if data, err := json.Marshal(b); err == nil {
		_ = g.nc.Publish(requests(b.Home(), "beat"), data) // without a connection it waits for one; one that is lost is followed by the next
	}
}
