package shell

import (
	"slices"
	"sync"
	"time"

	"mobula/internal/ids"
	"mobula/remote"
	"mobula/remote/membership"
)

// table is a control plane for tests: a table that every node writes its heartbeat into, a judge that reads it, and verdicts that every node is told.
type table struct {
	mu    sync.Mutex
	judge *membership.Judge
	rows  map[remote.Life]uint64
	nodes []*testNode
	over  []remote.Life
	began time.Time
	end   chan struct{}
	ended sync.WaitGroup
}

// newTable makes one whose judge is on this life's node.
func newTable(judge remote.Life) *table {
	return &table{
		judge: membership.NewJudge(membership.DefaultJudgeConfig(), judge), rows: make(map[remote.Life]uint64), began: time.Now(), end: make(chan struct{}),
	}
}

// join lets a node take part until it is killed, or the table ends.
func (t *table) join(n *testNode) {
	t.mu.Lock()
	t.nodes = append(t.nodes, n)
	t.mu.Unlock()
	t.ended.Go(func() {
		for {
			t.write(n.cfg.Core.Self)
			select {
			case <-time.After(membership.DefaultJudgeConfig().Beat):
			case <-n.ref.Done():
				return
			case <-t.end:
				return
			}
		}
	})
}

// write takes a heartbeat, and shows it to all.
func (t *table) write(node membership.Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := node.Life
	t.rows[l]++
	for _, n := range t.nodes {
		_ = n.Tell(membership.Beat{Node: node, Number: t.rows[l]})
	}
	for _, over := range t.judge.Heard(time.Since(t.began).Nanoseconds(), l, t.rows[l]) {
		t.judge.Ended(over)
		t.over = append(t.over, over)
		for _, n := range t.nodes {
			_ = n.Tell(membership.Fenced{Life: over})
		}
	}
}

// accuses is what a node asks by.
func (t *table) accuses(by ids.Home) func(membership.Accuse) {
	return func(f membership.Accuse) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.judge.Accused(time.Since(t.began).Nanoseconds(), by, f.Life)
	}
}

// verdicts gives the homes whose life was ended.
func (t *table) verdicts() (out []ids.Home) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.over {
		out = append(out, l.Home)
	}
	slices.Sort(out)
	return out
}

// close ends it.
func (t *table) close() {
	close(t.end)
	t.ended.Wait()
}
