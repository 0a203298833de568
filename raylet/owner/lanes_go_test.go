package owner_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mobula/internal/client"
	"mobula/internal/ids"
	"mobula/internal/registry"
	"mobula/internal/testkit"
	"mobula/wire"
	"mobula/worker"
)

// goSide is a worker process in Go: its client and its executor. A task's code stands at a gate before it begins and before it ends.
type goSide struct {
	w  *lanesWorld
	id ids.ClientID
	c  *client.Client
	e  *worker.Executor

	mu    sync.Mutex
	out   []wire.Msg
	gates []chan struct{}
	over  chan struct{}
	dead  bool
}

func startGo(w *lanesWorld, id ids.ClientID) side {
	s := &goSide{w: w, id: id, over: make(chan struct{})}
	s.c = client.New(client.Config{Port: s, Log: slog.New(slog.DiscardHandler), Holdings: func(h *wire.Holdings) { s.e.Holdings(h) },
		Welcome: &wire.Welcome{Version: wire.Version, Client: id, Job: 1, Root: ids.RootTask(1, uint64(id)), InlineMax: 1024}})
	f := &registry.Function{Invoke: s.run}
	s.e = worker.New(worker.Config{Client: s.c, StatsEvery: -1, Log: slog.New(slog.DiscardHandler),
		Lookup: func(string) (*registry.Function, bool) { return f, true }})
	return s
}

func (s *goSide) Send(msgs ...wire.Msg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, msgs...)
	return nil
}

func (s *goSide) Close() error { return nil }

// gate holds a task up until the world lets it go on.
func (s *goSide) gate(ctx context.Context) error {
	ch := make(chan struct{})
	s.mu.Lock()
	s.gates = append(s.gates, ch)
	s.mu.Unlock()
	select {
	case <-ch:
	case <-ctx.Done():
	case <-s.over:
	}
	return context.Cause(ctx)
}

// run is every task's function.
func (s *goSide) run(ctx context.Context, _ *registry.Call) ([]registry.Output, any, error) {
	tc := client.FromContext(ctx)
	s.mu.Lock()
	dead := s.dead
	if !dead {
		s.w.began(tc.Task, s.id)
	}
	s.mu.Unlock()
	if dead {
		return nil, nil, context.Canceled
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.dead {
			s.w.ended(tc.Task)
		}
	}()
	if err := s.gate(ctx); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	depth := s.w.depth[tc.Task]
	var specs []*wire.TaskSpec
	for i := range 2 * min(depth, 1) {
		specs = append(specs, s.w.spec(tc.Task, uint64(i+1), depth-1))
	}
	s.mu.Unlock()
	var hs []*client.Handle
	for _, spec := range specs {
		h, err := s.c.Submit(ctx, spec)
		if err != nil {
			return nil, nil, err
		}
		hs = append(hs, h[0])
	}
	var err error
	for _, h := range hs {
		if _, x := s.c.Get1(ctx, h); err == nil {
			err = x
		}
		h.Release()
	}
	if x := s.gate(ctx); x != nil {
		err = x
	}
	return []registry.Output{{Size: 1, Inline: []byte{1}}}, nil, err
}

func (s *goSide) deliver(m wire.Msg) {
	s.e.Deliver([]wire.Msg{m})
	synctest.Wait()
}

func (s *goSide) acts() []func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []func()
	for i, ch := range s.gates {
		out = append(out, func() {
			s.mu.Lock()
			s.gates = append(s.gates[:i], s.gates[i+1:]...)
			s.mu.Unlock()
			close(ch)
			synctest.Wait()
		})
	}
	return out
}

// whims lets time pass: what waits for company is sent, and who has waited long says so.
func (s *goSide) whims() []func() {
	return []func(){func() {
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
	}}
}

func (s *goSide) sent() []wire.Msg {
	s.c.Flush()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

func (s *goSide) has() map[ids.TaskID]bool {
	var h wire.Holdings
	s.e.Holdings(&h)
	out := make(map[ids.TaskID]bool)
	for _, t := range h.Tasks {
		out[t.Task] = true
	}
	return out
}

func (s *goSide) end() {
	s.mu.Lock()
	s.dead = true
	s.mu.Unlock()
	close(s.over)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_ = s.e.Close(ctx)
	_ = s.c.Close(ctx)
	synctest.Wait()
}

// The logic of Go's workers against the owner: whatever the order of messages, every task ends, none runs twice at a time, and none is
// held on a lane whose worker does not have it.
func TestSimulationOfGoWorkersLanes(t *testing.T) {
	for name, p := range lanesPlans {
		p.shared = true
		t.Run(name, func(t *testing.T) {
			for _, seed := range testkit.Seeds(t, lanesSeeds) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newLanesWorld(t, seed, p, startGo).run() })
				})
			}
		})
	}
}
