package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"mobula"
)

// idler is an actor that does nothing.
type idler struct{}

// constructed counts idlers.
var constructed atomic.Int64

var idlers = mobula.RegisterActor0("actorbench/idler", func(context.Context) (*idler, error) {
	constructed.Add(1)
	return &idler{}, nil
})

// spawn makes actors, and tells how long each took and how much memory each has.
func spawn(ctx context.Context, system string, z *sizes) (figures, error) {
	switch system {
	case mobulas:
		return spawnMobula(ctx, z.spawned)
	case protoactor:
		return spawnProtoactor(ctx, z.spawned)
	case floors:
		return spawnGoroutines(z.spawned)
	}
	return nil, unknown(system)
}

// spawned measures what makes n actors.
func spawned(n int, do func() error) (figures, error) {
	before, begun := heldNow(), time.Now()
	if err := do(); err != nil {
		return nil, err
	}
	took := time.Since(begun)
	return figures{"time": took.Seconds() * 1e6 / float64(n), "memory": (float64(heldNow()) - float64(before)) / float64(n)}, nil
}

func spawnMobula(ctx context.Context, n int) (_ figures, err error) {
	c, ctx, err := startMobula(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeMobula(ctx, c)) }()
	first, err := idlers.Spawn(ctx) // what it brings is not each one's
	if err != nil {
		return nil, err
	}
	if err := first.Ready(ctx); err != nil {
		return nil, err
	}
	before := constructed.Load()
	as := make([]mobula.ActorRef[idler], n)
	out, err := spawned(n, func() error {
		for i := range as {
			if as[i], err = idlers.Spawn(ctx); err != nil {
				return err
			}
		}
		for _, a := range as {
			if err := a.Ready(ctx); err != nil {
				return err
			}
		}
		if got := int(constructed.Load() - before); got != n {
			return fmt.Errorf("%d actors were constructed, want %d", got, n)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, stopAll(ctx, as)
}

// stopAll stops actors: so many take longer than a node gives what it has to end.
func stopAll(ctx context.Context, as []mobula.ActorRef[idler]) error {
	errs := make([]error, callers)
	var all sync.WaitGroup
	for c := range errs {
		all.Go(func() {
			for i := c; i < len(as) && errs[c] == nil; i += callers {
				errs[c] = as[i].Stop(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func spawnProtoactor(ctx context.Context, n int) (figures, error) {
	s := newProtoactor()
	defer s.Shutdown()
	started := make(chan struct{}, n)
	props := actor.PropsFromProducer(func() actor.Actor { return &protoIdler{started} })
	s.Root.Spawn(props)
	<-started
	return spawned(n, func() error {
		for range n {
			s.Root.Spawn(props)
		}
		for range n {
			select {
			case <-started:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

type protoIdler struct{ started chan<- struct{} }

func (p *protoIdler) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		p.started <- struct{}{}
	}
}

// spawnGoroutines makes goroutines that wait at a channel each.
func spawnGoroutines(n int) (figures, error) {
	in := make([]chan int, n)
	var started, ended sync.WaitGroup
	out, err := spawned(n, func() error {
		started.Add(n)
		for i := range in {
			in[i] = make(chan int, 1)
			ended.Go(func() {
				started.Done()
				<-in[i]
			})
		}
		started.Wait()
		return nil
	})
	for _, c := range in {
		close(c)
	}
	ended.Wait()
	return out, err
}
