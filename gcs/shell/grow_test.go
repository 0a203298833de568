package shell

import (
	"context"
	"sync"
	"testing"
	"time"
	_ "unsafe" // for go:linkname

	"mobula/gcs"
	"mobula/internal/ids"
	"mobula/internal/testkit"
	"mobula/internal/trust"
)

// counting writes one row after another, each by compare-and-set, until it is stopped; it gives what was acknowledged last of each.
type counting struct {
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex
	acked  map[string]uint64 // guarded by mu: the Epoch of each actor's row
	writes int               // guarded by mu
	slow   time.Duration     // guarded by mu: the longest write
}

func startCounting(t *testing.T, n *testNode, home ids.Home, writers int) *counting {
	t.Helper()
	c := &counting{acked: make(map[string]uint64)}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	for i := range writers {
		c.wg.Go(func() {
			rec := actorOf(home, "w"+ids.Home(i).String())
			rec.Epoch = 0
			var at uint64
			for ctx.Err() == nil {
				rec.MaxPendingCalls++
				began := time.Now()
				a := n.tables.Do(ctx, gcs.Write{Record: rec, Revision: int64(at)})
				switch {
				case a.Err != nil && ctx.Err() != nil:
					return
				case a.Err != nil:
					t.Errorf("write %d: %v", rec.MaxPendingCalls, a.Err)
					return
				case a.Conflict: // the write whose answer was lost was made, or is under way
					r := n.tables.Do(ctx, gcs.Read{Bucket: gcs.Actors, Key: rec.Key()})
					if r.Err != nil {
						return
					}
					at = r.Revision
					switch was, _ := r.Record.(gcs.ActorRecord); was.MaxPendingCalls {
					case rec.MaxPendingCalls:
					case rec.MaxPendingCalls - 1:
						rec.MaxPendingCalls--
						continue
					default:
						t.Errorf("write %d is a conflict, and the row is %+v", rec.MaxPendingCalls, r.Record)
						return
					}
				default:
					at = a.Revision
				}
				c.mu.Lock()
				c.acked[rec.Key()] = uint64(rec.MaxPendingCalls)
				c.writes++
				c.slow = max(c.slow, time.Since(began))
				c.mu.Unlock()
			}
		})
	}
	return c
}

// end stops the writers and compares the rows with what was acknowledged.
func (c *counting) end(t *testing.T, tables Tables) {
	t.Helper()
	c.stop()
	c.wg.Wait()
	for key, want := range c.acked {
		r := tables.Do(t.Context(), gcs.Read{Bucket: gcs.Actors, Key: key})
		if r.Err != nil || r.Record == nil || uint64(r.Record.(gcs.ActorRecord).MaxPendingCalls) < want {
			t.Errorf("write %d of %s was acknowledged, and the row is %+v, %v", want, key, r.Record, r.Err)
		}
	}
	t.Logf("%d writes, the longest took %v", c.writes, c.slow)
}

func (c *counting) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes
}

// copies is how many servers have a table.
func copies(t *testing.T, n *testNode, b gcs.Bucket) int {
	t.Helper()
	info, err := n.tables.(*carried).js.StreamInfo(stream(b))
	if err != nil || info.Cluster == nil {
		return 0
	}
	have := 1
	for _, r := range info.Cluster.Replicas {
		if r.Current && !r.Offline {
			have++
		}
	}
	return have
}

// A set that grows from one server to three while it is used loses no acknowledged write, nor does one that loses a server.
func TestASetGrowsAndLosesAServer(t *testing.T) {
	c := newCluster(t)
	first := c.server(1, nil)
	c.begin(first.GCS, 1, 2, 3, 4)
	n := c.node(trust.Data, 4, nil)
	w := startCounting(t, n, 4, 2)
	c.server(2, nil)
	c.server(3, nil)
	began := time.Now()
	testkit.Eventually(t, "three copies of each table", func() bool {
		for _, b := range shared {
			if copies(t, first, b) != 3 {
				return false
			}
		}
		return true
	})
	t.Logf("three copies after %v, %d writes", time.Since(began), w.count())
	before := w.count()
	testkit.Eventually(t, "writes go on", func() bool { return w.count() > before+100 })
	c.stop(1) // the node is connected to it, and it leads
	at := time.Now()
	before = w.count()
	testkit.Eventually(t, "writes go on without a server", func() bool { return w.count() > before+10 })
	t.Logf("writes go on after %v", time.Since(at))
	w.end(t, n.tables)
}

// Five servers keep five copies of each table: the loss of any two at once is none.
func TestFiveServersLoseTwo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for home := ids.Home(1); home <= 5; home++ {
		c.server(home, nil)
	}
	c.begin(c.nodes[1].GCS, 1, 2, 3, 4, 5)
	testkit.Eventually(t, "five copies of each table", func() bool {
		for _, b := range shared {
			if copies(t, c.nodes[5], b) != 5 {
				return false
			}
		}
		return true
	})
	c.stop(1)
	c.stop(2)
	if _, err := c.nodes[4].Call(testkit.Within(t), gcs.Claim{Actor: actorOf(4, "hits")}); err != nil {
		t.Error(err)
	}
	if _, err := c.nodes[3].Trust().Keys(testkit.Within(t), "token."); err != nil {
		t.Error(err)
	}
}

// A server that is gone for good is replaced by one that joins: the tables have three copies again, and the loss of another server is none.
func TestAServerIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for home := ids.Home(1); home <= 3; home++ {
		c.server(home, nil)
	}
	c.begin(c.nodes[1].GCS, 1, 2, 3, 4, 5)
	three := func(what string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			for _, b := range shared {
				if copies(t, c.nodes[2], b) != 3 {
					return false
				}
			}
			return true
		})
	}
	three("three copies")
	c.stop(1)
	c.server(4, nil)
	for _, n := range c.nodes {
		n.srv.away.Store(int64(time.Second))
	}
	three("three copies again")
	c.stop(3)
	if _, err := c.nodes[2].Call(testkit.Within(t), gcs.Claim{Actor: actorOf(2, "hits")}); err != nil {
		t.Error(err)
	}
}

// NATS holds an election after a time between these two, for raft groups that are made from then on.
//
//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
var minElectionTimeout time.Duration

//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
var maxElectionTimeout time.Duration

// A first server leads as soon as it is there: it does not wait for an election, for which nobody would wait here.
func TestAFirstServerWaitsForNoElection(t *testing.T) {
	atLeast, atMost := minElectionTimeout, maxElectionTimeout
	t.Cleanup(func() { minElectionTimeout, maxElectionTimeout = atLeast, atMost })
	minElectionTimeout, maxElectionTimeout = time.Hour, 2*time.Hour
	newCluster(t).server(1, nil)
}

// A server that is alone is there again at once, with all that was acknowledged.
func TestAServerAloneComesBack(t *testing.T) {
	c := newCluster(t)
	first := c.server(1, nil)
	c.begin(first.GCS, 1)
	c.stop(1)
	began := time.Now()
	again := c.serverAt(1, first.clients, first.routes, nil)
	t.Logf("it is back after %v", time.Since(began))
	rows, err := again.Call(testkit.Within(t), gcs.List{Bucket: gcs.Homes})
	if err != nil || len(rows) != 1 {
		t.Errorf("%v, %v", rows, err)
	}
}
