package shell

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"mobula/actors"
	"mobula/remote"
	"mobula/remote/membership"
)

// Membership is a node's part in the gossip.
type Membership struct {
	cfg  Config
	self remote.Life
	meta []byte
	ref  *actors.Ref[membership.Event]
	net  *transport
	list *memberlist.Memberlist
	keys *Keys // nil: nothing is encrypted

	news    *news
	queue   *queue
	refused atomic.Uint64
	refuted chan struct{} // capacity 1: this node has refuted what was said against it

	life context.Context // ends with the component
	stop context.CancelFunc
	wg   sync.WaitGroup

	leaving sync.Mutex // held while memberlist says goodbye, or is shut down
	unarm   func()     // ends the present core's timer; on the actor's goroutine

	mu     sync.Mutex
	gone   bool                                // guarded by mu: the component ends
	loads  *membership.Loads                   // guarded by mu
	alive  map[remote.Life]membership.Node     // guarded by mu: what memberlist has alive
	lists  map[uint64]chan []membership.Member // guarded by mu
	lastID uint64                              // guarded by mu
	report membership.Report                   // guarded by mu: this node's last load
}

// Start listens and begins to gossip, alone: Join leads to the others.
func Start(parent actors.Parent, cfg Config) (*Membership, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Membership{
		cfg: cfg, self: cfg.Core.Self.Life, news: newNews(), queue: newQueue(), loads: membership.NewLoads(),
		alive: make(map[remote.Life]membership.Node), lists: make(map[uint64]chan []membership.Member),
		unarm: func() {}, refuted: make(chan struct{}, 1),
	}
	m.life, m.stop = context.WithCancel(context.Background())
	if err := m.open(); err != nil {
		m.close()
		return nil, err
	}
	ref, err := actors.Spawn(parent, actors.Spec[membership.Event, membership.Effect]{
		Kind: "membership", Name: "membership",
		New:    m.core,
		Do:     m.do,
		Stop:   m.close,
		Policy: actors.Policy{MaxRestarts: 10, Window: time.Minute},
	})
	if err != nil {
		m.close()
		return nil, err
	}
	m.ref = ref
	for _, f := range []func(){m.pass, m.confirmRefutations} {
		if err := m.begin(f); err != nil { // the tree was stopped meanwhile
			return nil, err
		}
	}
	return m, nil
}

// core builds a core: what memberlist has, what the others said of their loads, and what is known elsewhere.
func (m *Membership) core(start actors.Start) (actors.Core[membership.Event, membership.Effect], []membership.Event, error) {
	facts := m.cfg.Facts()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.alive {
		facts = append(facts, membership.Seen{Node: n})
	}
	if start.Restart > 0 {
		for _, l := range m.loads.All() {
			if l.Life.Home != m.self.Home {
				facts = append(facts, membership.Gossiped{Load: l})
			}
		}
		if m.report.Version > 0 {
			facts = append(facts, m.report)
		}
	}
	return membership.NewCore(m.cfg.Core), facts, nil
}

// pass hands the news over to the actor.
func (m *Membership) pass() {
	for {
		select {
		case <-m.news.ready:
		case <-m.life.Done():
			return
		}
		for _, ev := range m.news.take() {
			if m.ref.Send(m.life, ev) != nil {
				return // the component has stopped
			}
		}
	}
}

// do carries out an effect.
func (m *Membership) do(self *actors.Ref[membership.Event], f membership.Effect) {
	switch f := f.(type) {
	case membership.After:
		m.unarm()
		m.unarm = self.After(f.Delay, membership.Timer{})
	case membership.Accuse:
		m.cfg.Accuse(f)
	case membership.Spread:
		m.mu.Lock()
		m.loads.Offer(f.Load)
		m.mu.Unlock()
		m.queue.load(f.Load)
	case membership.Listed:
		m.mu.Lock()
		answer := m.lists[f.ID]
		delete(m.lists, f.ID)
		m.mu.Unlock()
		if answer != nil {
			answer <- f.Members // it has room for one
		}
	case membership.Notice:
		if over, ok := f.(membership.NodeFenced); ok {
			m.end(over.Life)
		}
		m.cfg.Follow(f)
	}
}

// close ends what Start began. The others are not told: see Leave.
func (m *Membership) close() {
	m.mu.Lock()
	m.gone = true
	m.mu.Unlock()
	m.stop()
	m.leaving.Lock()
	if m.list != nil {
		_ = m.list.Shutdown() // it has no error to give
	}
	m.leaving.Unlock()
	m.wg.Wait()
}
