package main

import (
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
)

// The messages of protoactor-go's actors; a value by itself is answered with the next.
type (
	dropped[T any] struct{ v T }
	token[T any]   struct{ v T }
	askNext        struct{ n int }
	howMany        struct{}
)

// protoRoom is actors of protoactor-go. Their answers have no timeout, which would cost each a timer.
type protoRoom[T any] struct {
	kind   *kind[T]
	system *actor.ActorSystem
	pids   []*actor.PID
	ended  chan struct{}
}

// noTimeout is one that RequestFuture sets no timer for.
const noTimeout = -1

func newProtoactor() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
}

func openProtoactor[T any](k *kind[T], actors int) room {
	r := &protoRoom[T]{kind: k, system: newProtoactor(), pids: make([]*actor.PID, actors), ended: make(chan struct{}, tokens)}
	for i := range r.pids {
		told := 0
		r.pids[i] = r.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch m := c.Message().(type) {
			case T:
				c.Respond(k.after(m))
			case dropped[T]:
				told++
			case howMany:
				c.Respond(told)
			case token[T]:
				if left := k.num(m.v); left == 0 {
					r.ended <- struct{}{}
				} else {
					c.Send(r.pids[(i+1)%actors], token[T]{k.of(left - 1)})
				}
			case askNext:
				c.Respond(r.askNext(c, r.pids[(i+1)%actors], m.n))
			}
		}))
	}
	return r
}

// asked is what an actor that was to ask another answers.
type asked struct{ err error }

func (r *protoRoom[T]) askNext(c actor.Context, next *actor.PID, n int) asked {
	for i := range n {
		if err := r.answered(c.RequestFuture(next, r.kind.of(i), noTimeout), i); err != nil {
			return asked{err}
		}
	}
	return asked{}
}

func (r *protoRoom[T]) answered(f actor.Future, i int) error {
	v, err := f.Result()
	if err != nil {
		return err
	}
	if t, ok := v.(T); !ok || r.kind.num(t) != i+1 {
		return fmt.Errorf("%d was answered with %v", i, v)
	}
	return nil
}

func (r *protoRoom[T]) request(i int) actor.Future {
	return r.system.Root.RequestFuture(r.pids[0], r.kind.of(i), noTimeout)
}

func (r *protoRoom[T]) asker() func(i int) error {
	return func(i int) error { return r.answered(r.request(i), i) }
}

func (r *protoRoom[T]) tell(i int) error {
	r.system.Root.Send(r.pids[0], dropped[T]{r.kind.of(i)})
	return nil
}

func (r *protoRoom[T]) heard() (int, error) {
	v, err := r.system.Root.RequestFuture(r.pids[0], howMany{}, noTimeout).Result()
	n, _ := v.(int)
	return n, err
}

func (r *protoRoom[T]) outstanding(n, window int, all bool) error {
	fs := make([]actor.Future, window)
	for i := range window {
		fs[i] = r.request(i)
	}
	for i := range n {
		if err := r.answered(fs[i%window], i); err != nil {
			return err
		}
		switch last := i%window == window-1; {
		case !all && i+window < n:
			fs[i%window] = r.request(i + window)
		case all && last && i+1 < n:
			for j := range window {
				fs[j] = r.request(i + 1 + j)
			}
		}
	}
	return nil
}

func (r *protoRoom[T]) asks(i, n int) func() error {
	f := r.system.Root.RequestFuture(r.pids[i], askNext{n}, noTimeout)
	return func() error {
		v, err := f.Result()
		if a, ok := v.(asked); ok {
			return a.err
		}
		return err
	}
}

func (r *protoRoom[T]) pass(i, hops int) error {
	r.system.Root.Send(r.pids[i], token[T]{r.kind.of(hops)})
	return nil
}

func (r *protoRoom[T]) over() <-chan struct{} { return r.ended }

func (r *protoRoom[T]) close() error {
	for _, pid := range r.pids {
		if err := r.system.Root.StopFuture(pid).Wait(); err != nil {
			return fmt.Errorf("stop an actor: %w", err)
		}
	}
	r.system.Shutdown()
	return nil
}
