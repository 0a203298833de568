package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"mobula/internal/state"
)

// Mailboxes are histograms of how many messages wait, and for how long, by kind of
// component. The time is not measured for each message, which would be expensive. It follows from Little's law:
// the number of waiting messages divided by the rate of handled ones between two observations. For a component
// that handles nothing it is how long that has lasted.
type Mailboxes struct {
	depth, age *prometheus.HistogramVec

	mu    sync.Mutex
	seen  map[string]look // guarded by mu: by path
	kinds map[string]bool // guarded by mu
}

type look struct {
	at      int64
	handled uint64
	stuck   int64 // since when nothing was handled although messages wait; 0: not stuck
}

func newMailboxes() *Mailboxes {
	return &Mailboxes{
		depth: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mobula_mailbox_depth", Help: "Messages that wait in a component's mailbox, looked at every second.",
			Buckets: []float64{0, 1, 10, 100, 1000, 10_000, 100_000},
		}, []string{"kind"}),
		age: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mobula_mailbox_age_seconds", Help: "How long messages wait in a component's mailbox, estimated every second.",
			Buckets: []float64{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 3, 10, 60},
		}, []string{"kind"}),
		seen: make(map[string]look), kinds: make(map[string]bool),
	}
}

// Observe records the tree at a time in Unix nanoseconds.
func (m *Mailboxes) Observe(now int64, tree []state.Component) {
	m.mu.Lock()
	defer m.mu.Unlock()
	live := make(map[string]look, len(tree))
	for _, c := range tree {
		if c.Bound == 0 {
			continue // a supervisor
		}
		was, known := m.seen[c.Path]
		l := look{at: now, handled: c.Handled}
		age := 0.0
		switch done := c.Handled - was.handled; {
		case !known || c.Depth == 0 || c.Handled < was.handled:
		case done > 0:
			age = float64(c.Depth) / float64(done) * float64(now-was.at) / 1e9
		default:
			if l.stuck = was.stuck; l.stuck == 0 {
				l.stuck = was.at
			}
			age = float64(now-l.stuck) / 1e9
		}
		live[c.Path] = l
		kind := c.Kind
		if !m.kinds[kind] && len(m.kinds) >= maxKinds {
			kind = other
		}
		m.kinds[kind] = true
		m.depth.WithLabelValues(kind).Observe(float64(c.Depth))
		m.age.WithLabelValues(kind).Observe(age)
	}
	m.seen = live
}
