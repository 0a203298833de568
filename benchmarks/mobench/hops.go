package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// hops is the floor of the embedded mode: three bare actors of the library that the runtime is built on, each passing a
// message to the next, and a goroutine that waits for it. No table, no lease, no result.
type hops struct {
	system *actor.ActorSystem
	first  *actor.PID
	last   chan int
}

// hopMsg is passed on; the last actor reports those that ask for it.
type hopMsg struct {
	n      int
	report bool
}

func startHops() *hops {
	h := &hops{last: make(chan int, 1)}
	h.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	next := h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if m, ok := c.Message().(*hopMsg); ok && m.report {
			h.last <- m.n
		}
	}))
	for range 2 {
		to := next
		next = h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if m, ok := c.Message().(*hopMsg); ok {
				c.Send(to, m)
			}
		}))
	}
	h.first = next
	return h
}

func (h *hops) stop() { h.system.Shutdown() }

// inTurn gives the seconds of each of n round trips.
func (h *hops) inTurn(ctx context.Context, n int) ([]float64, error) {
	out := make([]float64, 0, n)
	for i := range n {
		begun := time.Now()
		h.system.Root.Send(h.first, &hopMsg{i, true})
		select {
		case <-h.last:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		out = append(out, time.Since(begun).Seconds())
	}
	return out, nil
}

// piped gives the messages a second of n sent without waiting.
func (h *hops) piped(ctx context.Context, n int) (float64, error) {
	begun := time.Now()
	for i := range n {
		h.system.Root.Send(h.first, &hopMsg{i, i == n-1})
	}
	select {
	case <-h.last:
		return perSecond(n, begun), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}
