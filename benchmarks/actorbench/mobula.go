package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"mobula"
)

// seat is Mobula's actor.
type seat[T any] struct {
	of   *seats[T]
	next mobula.ActorRef[seat[T]]
	told int
}

func (s *seat[T]) Ask(_ context.Context, v T) (T, error) { return s.of.kind.after(v), nil }

func (s *seat[T]) Drop(context.Context, T) (mobula.Void, error) {
	s.told++
	return mobula.Void{}, nil
}

func (s *seat[T]) Heard(context.Context) (int, error) { return s.told, nil }

func (s *seat[T]) Follow(_ context.Context, next mobula.ActorRef[seat[T]]) (mobula.Void, error) {
	s.next = next
	return mobula.Void{}, nil
}

func (s *seat[T]) AskNext(ctx context.Context, n int) (int, error) {
	for i := range n {
		if err := s.of.once(ctx, s.next, i); err != nil {
			return i, err
		}
	}
	return n, nil
}

func (s *seat[T]) Token(ctx context.Context, v T) (mobula.Void, error) {
	left := s.of.kind.num(v)
	if left == 0 {
		s.of.over <- struct{}{}
		return mobula.Void{}, nil
	}
	return mobula.Void{}, s.of.token.Tell(ctx, s.next, mobula.V(s.of.kind.of(left-1)))
}

// seats is the actor's type, for values of one type.
type seats[T any] struct {
	kind    *kind[T]
	over    chan struct{}
	actors  mobula.Actor0[seat[T]]
	ask     mobula.Method1[seat[T], T, T]
	drop    mobula.Method1[seat[T], T, mobula.Void]
	heard   mobula.Method0[seat[T], int]
	follow  mobula.Method1[seat[T], mobula.ActorRef[seat[T]], mobula.Void]
	askNext mobula.Method1[seat[T], int, int]
	token   mobula.Method1[seat[T], T, mobula.Void]
}

var (
	seatsOfInts    = register(ints)
	seatsOfParcels = register(parcels)
)

func register[T any](k *kind[T]) *seats[T] {
	s := &seats[T]{kind: k, over: make(chan struct{}, tokens)}
	s.actors = mobula.RegisterActor0("actorbench/"+k.name, func(context.Context) (*seat[T], error) { return &seat[T]{of: s}, nil })
	s.ask = mobula.RegisterMethod1(s.actors, "Ask", (*seat[T]).Ask)
	s.drop = mobula.RegisterMethod1(s.actors, "Drop", (*seat[T]).Drop)
	s.heard = mobula.RegisterMethod0(s.actors, "Heard", (*seat[T]).Heard)
	s.follow = mobula.RegisterMethod1(s.actors, "Follow", (*seat[T]).Follow)
	s.askNext = mobula.RegisterMethod1(s.actors, "AskNext", (*seat[T]).AskNext)
	s.token = mobula.RegisterMethod1(s.actors, "Token", (*seat[T]).Token)
	return s
}

// seatsOf gives the type for values of type T.
func seatsOf[T any]() *seats[T] {
	for _, s := range []any{seatsOfInts, seatsOfParcels} {
		if s, ok := s.(*seats[T]); ok {
			return s
		}
	}
	return nil
}

// once asks once.
func (s *seats[T]) once(ctx context.Context, a mobula.ActorRef[seat[T]], i int) error {
	return s.answered(ctx, s.ask.Go(ctx, a, mobula.V(s.kind.of(i))), i)
}

func (s *seats[T]) answered(ctx context.Context, r mobula.Ref[T], i int) error {
	v, err := r.Get(ctx)
	if err != nil {
		return err
	}
	r.Release()
	if got := s.kind.num(v); got != i+1 {
		return wrong(i, got)
	}
	return nil
}

// startMobula starts a node in this process, with its default settings.
func startMobula(ctx context.Context, processes bool) (*mobula.Cluster, context.Context, error) {
	opts := []mobula.StartOption{mobula.WithCPUs(cpus)}
	if processes {
		opts = append(opts, mobula.WithProcesses())
	}
	c, err := mobula.Start(ctx, opts...)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Context(ctx), nil
}

// closeGrace bounds the end of a node.
const closeGrace = 30 * time.Second

func closeMobula(ctx context.Context, c *mobula.Cluster) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	return c.Close(ctx)
}

// mobulaRoom is actors of Mobula.
type mobulaRoom[T any] struct {
	of  *seats[T]
	c   *mobula.Cluster
	ctx context.Context //nolint:containedctx // bound to the cluster
	as  []mobula.ActorRef[seat[T]]
}

func openMobula[T any](ctx context.Context, _ *kind[T], actors int, processes bool) (_ room, err error) {
	c, ctx, err := startMobula(ctx, processes)
	if err != nil {
		return nil, err
	}
	r := &mobulaRoom[T]{of: seatsOf[T](), c: c, ctx: ctx, as: make([]mobula.ActorRef[seat[T]], actors)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	for i := range r.as {
		if r.as[i], err = r.of.actors.Spawn(ctx); err != nil {
			return nil, err
		}
	}
	for i := range r.as {
		if _, err = r.of.follow.Go(ctx, r.as[i], mobula.V(r.as[(i+1)%actors])).Get(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *mobulaRoom[T]) close() error { return closeMobula(r.ctx, r.c) }

func (r *mobulaRoom[T]) asker() func(i int) error {
	return func(i int) error { return r.of.once(r.ctx, r.as[0], i) }
}

func (r *mobulaRoom[T]) tell(i int) error {
	return r.of.drop.Tell(r.ctx, r.as[0], mobula.V(r.of.kind.of(i)))
}

func (r *mobulaRoom[T]) heard() (int, error) { return r.of.heard.Go(r.ctx, r.as[0]).Get(r.ctx) }

func (r *mobulaRoom[T]) outstanding(n, window int, all bool) error {
	refs := make([]mobula.Ref[T], window)
	ask := func(i int) { refs[i%window] = r.of.ask.Go(r.ctx, r.as[0], mobula.V(r.of.kind.of(i))) }
	if all {
		return r.together(n, refs, ask)
	}
	for i := range window {
		ask(i)
	}
	for i := range n {
		if err := r.of.answered(r.ctx, refs[i%window], i); err != nil {
			return err
		}
		if next := i + window; next < n {
			ask(next)
		}
	}
	return nil
}

// together waits for all answers of a window by one call.
func (r *mobulaRoom[T]) together(n int, refs []mobula.Ref[T], ask func(i int)) error {
	for first := 0; first < n; first += len(refs) {
		for i := range refs {
			ask(first + i)
		}
		got, err := mobula.GetAll(r.ctx, refs)
		if err != nil {
			return err
		}
		for i, v := range got {
			refs[i].Release()
			if r.of.kind.num(v) != first+i+1 {
				return wrong(first+i, r.of.kind.num(v))
			}
		}
	}
	return nil
}

func (r *mobulaRoom[T]) asks(actor, n int) func() error {
	ref := r.of.askNext.Go(r.ctx, r.as[actor], mobula.V(n))
	return func() error {
		defer ref.Release()
		got, err := ref.Get(r.ctx)
		if err == nil && got != n {
			err = fmt.Errorf("an actor asked %d times, want %d", got, n)
		}
		return err
	}
}

func (r *mobulaRoom[T]) pass(actor, hops int) error {
	return r.of.token.Tell(r.ctx, r.as[actor], mobula.V(r.of.kind.of(hops)))
}

func (r *mobulaRoom[T]) over() <-chan struct{} { return r.of.over }
