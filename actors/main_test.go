package actors

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mobula/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A script core: what an event does is in the event.
type ev struct {
	id    int
	crash int              // panic while fewer than this many deliveries were seen
	do    []eff            // effects
	step  func(*recording) // runs inside Step
}

type eff struct {
	id  int
	run func(self *Ref[ev])
}

// recording is what a test sees of a component; it outlives cores.
type recording struct {
	mu      sync.Mutex
	seen    []int       // ids in order of Step, of every core
	cores   [][]int     // by core
	tries   map[int]int // deliveries by id
	effects []int
	flushes int
	stops   int
	starts  []Start
	poison  []int
	errs    []error
	times   []int64
}

func (r *recording) with(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *recording) ids() (out []int) {
	r.with(func() { out = slices.Clone(r.seen) })
	return out
}

type core struct {
	rec   *recording
	index int
}

func (c *core) Step(now int64, e ev) []eff {
	c.rec.mu.Lock()
	c.rec.tries[e.id]++
	c.rec.times = append(c.rec.times, now)
	crash := c.rec.tries[e.id] <= e.crash
	if !crash {
		c.rec.seen = append(c.rec.seen, e.id)
		c.rec.cores[c.index] = append(c.rec.cores[c.index], e.id)
	}
	c.rec.mu.Unlock()
	if e.step != nil {
		e.step(c.rec)
	}
	if crash {
		panic(fmt.Sprintf("crash %d", e.id))
	}
	return e.do
}

func newRecording() *recording { return &recording{tries: map[int]int{}} }

func scriptSpec(name string, rec *recording) Spec[ev, eff] {
	return Spec[ev, eff]{
		Kind: "script", Name: name,
		New: func(start Start) (Core[ev, eff], []ev, error) {
			c := &core{rec: rec}
			rec.with(func() {
				c.index = len(rec.cores)
				rec.cores = append(rec.cores, nil)
				rec.starts = append(rec.starts, start)
			})
			return c, nil, nil
		},
		Do: func(self *Ref[ev], f eff) {
			if f.run != nil {
				f.run(self)
			}
			rec.with(func() { rec.effects = append(rec.effects, f.id) })
		},
		Flush: func() { rec.with(func() { rec.flushes++ }) },
		Stop:  func() { rec.with(func() { rec.stops++ }) },
		OnPoison: func(_ *Ref[ev], e ev, err error) {
			rec.with(func() { rec.poison = append(rec.poison, e.id); rec.errs = append(rec.errs, err) })
		},
	}
}

type events struct {
	mu   sync.Mutex
	list []Event
}

func (l *events) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

func (l *events) of(k EventKind) (out []Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.list {
		if e.Kind == k {
			out = append(out, e)
		}
	}
	return out
}

// system is stopped at the end of the test, with a check that it could be.
func system(t testing.TB, cfg Config) *System {
	t.Helper()
	s := NewSystem(cfg)
	t.Cleanup(func() { stopTree(t, s) })
	return s
}

func stopTree(t testing.TB, s *System) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience())
	defer cancel()
	if err := s.StopTree(ctx); err != nil {
		t.Errorf("StopTree: %v", err)
	}
}

func spawn(t testing.TB, p Parent, s Spec[ev, eff]) *Ref[ev] {
	t.Helper()
	r, err := Spawn(p, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func post(t testing.TB, r *Ref[ev], es ...ev) {
	t.Helper()
	for _, e := range es {
		if err := r.Post(e); err != nil {
			t.Fatal(err)
		}
	}
}

// barrier returns when everything posted before has been stepped.
func barrier(t testing.TB, r *Ref[ev]) {
	t.Helper()
	done := make(chan struct{})
	post(t, r, ev{id: -1, step: func(*recording) { close(done) }})
	select {
	case <-done:
	case <-r.Done():
		t.Fatalf("%s stopped", r.Name())
	case <-time.After(testkit.Patience()):
		t.Fatalf("%s does not step", r.Name())
	}
}

func want[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
